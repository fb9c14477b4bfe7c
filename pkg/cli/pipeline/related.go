package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/tree"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// mostRelated bounds how many objects of an app are shown.
	mostRelated = 200
	// deepest bounds how far sources are followed, which may name each other in circles.
	deepest = 4
)

// related shows the objects of the app in the targets of an environment.
func (o *GetOptions) related(ctx context.Context, p *weave.Pipeline) error {
	if !slices.ContainsFunc(p.Spec.Environments, func(e weave.Environment) bool { return e.Name == o.Related }) {
		return fmt.Errorf("pipeline %q has no environment %q", p.Name, o.Related)
	}
	of := p.Status.Environments[o.Related]
	if of == nil || len(of.Targets) == 0 {
		return fmt.Errorf("nothing is known of environment %q yet", o.Related)
	}
	for i := range of.Targets {
		t := &of.Targets[i]
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		fmt.Fprintf(o.Out, "Target: %s\n", text.Line(place(t), longest))
		if t.Error != "" {
			fmt.Fprintf(o.Out, "! %s\n", text.Line(t.Error, longest))
		}
		if len(t.Workloads) == 0 {
			fmt.Fprintln(o.Out, "It runs nothing of the app.")
		}
		for j := range t.Workloads {
			if err := o.treeOf(ctx, t, &t.Workloads[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeOf shows one workload of a target.
func (o *GetOptions) treeOf(ctx context.Context, t *weave.TargetStatus, w *weave.WorkloadStatus) error {
	root, err := o.workload(ctx, t.Namespace, w)
	if err != nil {
		return err
	}
	if root == nil {
		if err := seen(t, w).Write(o.Out); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "%s is not of the logical cluster: cluster %q has it by itself, and shows pipelines no more of it. Look there: flux trace %s %s -n %s\n",
			text.Line(w.Kind+"/"+w.Name, longest), text.Line(t.Name, longest), strings.ToLower(text.Line(w.Kind, longest)), text.Line(w.Name, longest), text.Line(t.Namespace, longest))
		return nil
	}
	node, err := o.grow(ctx, root)
	if err != nil {
		return err
	}
	o.sources(ctx, node, root, deepest)
	if err := o.content(ctx, node, root); err != nil {
		return err
	}
	return node.Write(o.Out)
}

// seen is what the status tells of a workload that a cluster has by itself: it, its conditions, and the images that it runs.
func seen(t *weave.TargetStatus, w *weave.WorkloadStatus) *tree.Node {
	out := &tree.Node{
		Kind: text.Line(w.Kind, longest), Namespace: text.Line(t.Namespace, longest), Name: text.Line(w.Name, longest), Clusters: []string{text.Line(t.Name, longest)},
		Health: tree.Progressing, Status: text.Line(w.Version, longest),
	}
	switch {
	case w.Ready:
		out.Health = tree.Healthy
	case w.Failed:
		out.Health = tree.Degraded
	}
	if w.Message != "" && !w.Ready {
		out.Problems = append(out.Problems, text.Line(w.Message, longest))
	}
	for _, c := range w.Conditions {
		child := &tree.Node{Kind: "condition", Name: text.Line(c.Type, longest), Relation: tree.Owns, Health: tree.Healthy, Status: text.Line(string(c.Status)+" "+c.Reason, longest)}
		if c.Type == "Ready" {
			child.Health = out.Health
		}
		out.Children = append(out.Children, child)
	}
	for _, image := range w.Images {
		out.Children = append(out.Children, &tree.Node{Kind: "image", Name: text.Line(image, longest), Relation: tree.Owns, Health: tree.Healthy})
	}
	return out
}

// workload reads a workload of a target from the logical cluster, nil if it is not there.
func (o *GetOptions) workload(ctx context.Context, namespace string, w *weave.WorkloadStatus) (*unstructured.Unstructured, error) {
	for _, kind := range weave.Workloads {
		if kind.Kind == w.Kind {
			return o.get(ctx, kind.GroupKind, namespace, w.Name)
		}
	}
	return nil, nil
}

// sources adds where the content of an object of Flux comes from, and where that comes from in turn, as a chart from its repository.
func (o *GetOptions) sources(ctx context.Context, node *tree.Node, of *unstructured.Unstructured, deep int) {
	if deep == 0 {
		return
	}
	for _, ref := range sourceRefs(of) {
		child := &tree.Node{Kind: ref.GetKind(), Namespace: ref.GetNamespace(), Name: ref.GetName(), Relation: tree.Needs, Health: tree.Missing}
		node.Children = append(node.Children, child)
		source, err := o.get(ctx, ref.GroupVersionKind().GroupKind(), ref.GetNamespace(), ref.GetName())
		if err != nil {
			child.Health, child.Problems = tree.Unknown, []string{err.Error()}
			continue
		}
		if source == nil {
			child.Status = "there is none"
			continue
		}
		child.Health, child.Status = stateOf(source)
		o.sources(ctx, child, source, deep-1)
	}
}

// stateOf says how an object of Flux fares.
func stateOf(source *unstructured.Unstructured) (tree.Health, string) {
	revision, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	said := text.Line(strings.TrimSpace(url+" "+revision), longest)
	conditions, _, _ := unstructured.NestedSlice(source.Object, "status", "conditions")
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if c["type"] != "Ready" {
			continue
		}
		switch c["status"] {
		case "True":
			return tree.Healthy, said
		case "False":
			message, _ := c["message"].(string)
			return tree.Degraded, text.Line(said+" "+message, longest)
		}
	}
	return tree.Unknown, said
}

// content adds what an object of Flux has made: by its inventory, or else by the labels that Flux gives.
func (o *GetOptions) content(ctx context.Context, node *tree.Node, of *unstructured.Unstructured) error {
	kind := of.GroupVersionKind().GroupKind()
	if kind != versions.HelmRelease && kind != versions.Kustomization {
		return nil
	}
	refs, known := inventory(of)
	if !known {
		var err error
		if refs, err = o.labelled(ctx, of); err != nil {
			return err
		}
	}
	more := max(0, len(refs)-mostRelated)
	for _, ref := range refs[:len(refs)-more] {
		child, err := o.made(ctx, ref)
		if err != nil {
			child = &tree.Node{Kind: ref.kind.Kind, Namespace: ref.namespace, Name: ref.name, Health: tree.Unknown, Problems: []string{err.Error()}}
		}
		child.Relation = tree.Owns
		node.Children = append(node.Children, child)
	}
	if more > 0 {
		node.Children = append(node.Children, &tree.Node{Kind: "object", Count: more, Relation: tree.Owns, Health: tree.Healthy, Status: "not shown"})
	}
	return nil
}

// made is the tree of an object that an object of Flux has made.
func (o *GetOptions) made(ctx context.Context, ref reference) (*tree.Node, error) {
	object, err := o.get(ctx, ref.kind, ref.namespace, ref.name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return &tree.Node{Kind: ref.kind.Kind, Namespace: ref.namespace, Name: ref.name, Health: tree.Missing, Status: "there is none"}, nil
	}
	if slices.ContainsFunc(weave.Workloads, func(w weave.Workload) bool { return w.GroupKind == ref.kind }) {
		return o.grow(ctx, object)
	}
	return &tree.Node{Kind: ref.kind.Kind, Namespace: ref.namespace, Name: ref.name, Health: tree.Healthy}, nil
}

// reference names an object.
type reference struct {
	kind            schema.GroupKind
	namespace, name string
}

// inventory are the objects that an object of Flux says that it has made; false if it does not say.
func inventory(of *unstructured.Unstructured) ([]reference, bool) {
	entries, found, err := unstructured.NestedSlice(of.Object, "status", "inventory", "entries")
	if !found || err != nil {
		return nil, false
	}
	var out []reference
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		parts := strings.Split(id, "_") // NAMESPACE_NAME_GROUP_KIND, in which a colon of a name is two underscores
		if len(parts) < 4 {
			continue
		}
		last := len(parts) - 1
		out = append(out, reference{
			schema.GroupKind{Group: parts[last-1], Kind: parts[last]}, parts[0], strings.ReplaceAll(strings.Join(parts[1:last-1], "_"), "__", ":"),
		})
	}
	return sortedReferences(out), true
}

func sortedReferences(in []reference) []reference {
	slices.SortFunc(in, func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return in
}

// labelled are the objects of the namespace that a HelmRelease installs into which carry the labels of Flux. Kinds that the user may not list are left out.
func (o *GetOptions) labelled(ctx context.Context, of *unstructured.Unstructured) ([]reference, error) {
	group := of.GroupVersionKind().Group
	selector := labels.Set{group + "/name": of.GetName(), group + "/namespace": of.GetNamespace()}.String()
	namespace, _, _ := unstructured.NestedString(of.Object, "spec", "targetNamespace")
	namespace = cmp.Or(namespace, of.GetNamespace())
	var out []reference
	kinds := []schema.GroupKind{versions.CronJob}
	for _, k := range projection.Kinds() {
		if k.Namespaced {
			kinds = append(kinds, k.GVK.GroupKind())
		}
	}
	for _, kind := range kinds {
		mapping, err := o.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := o.client.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: mostRelated + 1})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				out = append(out, reference{kind, list.Items[i].GetNamespace(), list.Items[i].GetName()})
			}
		}
	}
	return sortedReferences(out), nil
}
