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
	beside := &beside{GetOptions: o, pipeline: p}
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
			if err := o.treeOf(ctx, t, &t.Workloads[j], beside); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeOf shows one workload of a target.
func (o *GetOptions) treeOf(ctx context.Context, t *weave.TargetStatus, w *weave.WorkloadStatus, beside *beside) error {
	root, err := o.workload(ctx, t.Namespace, w)
	if err != nil && (t.Name == "" || !apierrors.IsForbidden(err)) {
		return err // who may not read the namespace here may see by the pipeline what a cluster has by itself
	}
	if root == nil {
		return beside.write(ctx, t, w, err)
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
	for _, ref := range versions.SourcesOf(of) {
		child := &tree.Node{Kind: ref.Kind.Kind, Namespace: ref.Namespace, Name: ref.Name, Relation: tree.Needs, Health: tree.Missing}
		node.Children = append(node.Children, child)
		source, err := o.get(ctx, ref.Kind, ref.Namespace, ref.Name)
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
	refs, known := versions.Inventory(of)
	if !known {
		var err error
		if refs, err = o.labelled(ctx, of); err != nil {
			return err
		}
	}
	more := max(0, len(refs)-versions.MostRelated)
	for _, ref := range refs[:len(refs)-more] {
		child, err := o.made(ctx, ref)
		if err != nil {
			child = &tree.Node{Kind: ref.Kind.Kind, Namespace: ref.Namespace, Name: ref.Name, Health: tree.Unknown, Problems: []string{err.Error()}}
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
func (o *GetOptions) made(ctx context.Context, ref versions.Reference) (*tree.Node, error) {
	object, err := o.get(ctx, ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return &tree.Node{Kind: ref.Kind.Kind, Namespace: ref.Namespace, Name: ref.Name, Health: tree.Missing, Status: "there is none"}, nil
	}
	if slices.ContainsFunc(weave.Workloads, func(w weave.Workload) bool { return w.GroupKind == ref.Kind }) {
		return o.grow(ctx, object)
	}
	return &tree.Node{Kind: ref.Kind.Kind, Namespace: ref.Namespace, Name: ref.Name, Health: tree.Healthy}, nil
}

// labelled are the objects of the namespace that a HelmRelease installs into which carry the labels of Flux. Kinds that the user may not list are left out.
func (o *GetOptions) labelled(ctx context.Context, of *unstructured.Unstructured) ([]versions.Reference, error) {
	group := of.GroupVersionKind().Group
	selector := labels.Set{group + "/name": of.GetName(), group + "/namespace": of.GetNamespace()}.String()
	namespace, _, _ := unstructured.NestedString(of.Object, "spec", "targetNamespace")
	namespace = cmp.Or(namespace, of.GetNamespace())
	var out []versions.Reference
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
		list, err := o.client.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: versions.MostRelated + 1})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				out = append(out, versions.Reference{Kind: kind, Namespace: list.Items[i].GetNamespace(), Name: list.Items[i].GetName()})
			}
		}
	}
	return versions.Sorted(out), nil
}
