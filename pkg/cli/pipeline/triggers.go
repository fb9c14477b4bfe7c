package pipeline

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// imageAutomation is the kind of Flux that writes new image tags to git.
var imageAutomation = schema.GroupKind{Group: "image.toolkit.fluxcd.io", Kind: "ImageUpdateAutomation"}

// feed is something that brings new versions to an environment.
type feed struct {
	kind, name, what string
}

// triggers are the rows that tell what starts a pipeline and what carries a version from one environment to the next.
func triggers(p *weave.Pipeline, feeds []feed) [][]string {
	out := [][]string{{"TRIGGER", "ENVIRONMENT", "WHAT"}}
	for i := range p.Spec.Environments {
		name := text.Line(p.Spec.Environments[i].Name, longestCell)
		if i == 0 {
			for _, f := range feeds {
				out = append(out, []string{cell(f.kind), name, text.Line(f.name+" "+f.what, longest)})
			}
		}
		if i+1 < len(p.Spec.Environments) {
			next := p.PromotionOf(p.Spec.Environments[i+1])
			if next != nil {
				out = append(out, []string{"webhook", name, text.Line(fmt.Sprintf("POST /promotion/%s/%s/%s%s", p.Namespace, p.Name, p.Spec.Environments[i].Name, signed(p, next)), longest)})
			}
		}
		if of := p.PromotionOf(p.Spec.Environments[i]); i > 0 && of != nil {
			out = append(out, carriers(p, name, of)...)
		}
	}
	return out
}

// signed tells which key signs the calls about promotions to an environment: that of its own promotion, or else of the pipeline.
func signed(p *weave.Pipeline, of *weave.Promotion) string {
	secret := of.Strategy.SecretRef
	if secret == nil && p.Spec.Promotion != nil {
		secret = p.Spec.Promotion.Strategy.SecretRef
	}
	if secret == nil {
		return ""
	}
	return fmt.Sprintf(", signed with the key of Secret %q", secret.Name)
}

// carriers tell how a version reaches an environment.
func carriers(p *weave.Pipeline, name string, of *weave.Promotion) [][]string {
	var out [][]string
	if of.Manual {
		out = append(out, []string{"person", name, text.Line(fmt.Sprintf("manifold pipeline promote %s -n %s --to %s", p.Name, p.Namespace, name), longest)},
			[]string{"webhook", name, text.Line(fmt.Sprintf("POST /approval/%s/%s/%s/REVISION%s", p.Namespace, p.Name, name, signed(p, of)), longest)})
	}
	switch s := &of.Strategy; {
	case s.PullRequest != nil:
		out = append(out, []string{"pull request", name, text.Line(fmt.Sprintf("%s, %s, to %s", s.PullRequest.Type, s.PullRequest.URL, s.PullRequest.BaseBranch), longest)})
	case s.Notification != nil:
		out = append(out, []string{"event", name, "with reason Promote, about the pipeline"})
	case s.Direct != nil:
		out = append(out, []string{"direct", name, text.Line(fmt.Sprintf("by the rights of ServiceAccount %q", s.Direct.ServiceAccountName), longest)})
	}
	return out
}

// feeds are what brings new versions to the first environment, as far as the user may read it: the sources of its workloads, and the image automations
// that write to them. What cannot be read is told in its place.
func (o *GetOptions) feeds(ctx context.Context, p *weave.Pipeline) []feed {
	var out []feed
	add := func(f feed) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if len(p.Spec.Environments) == 0 {
		return nil
	}
	of := p.Status.Environments[p.Spec.Environments[0].Name]
	if of == nil {
		return nil
	}
	for i := range of.Targets {
		t := &of.Targets[i]
		for j := range t.Workloads {
			workload, err := o.workload(ctx, t.Namespace, &t.Workloads[j])
			if err != nil || workload == nil {
				continue // "--related" tells of it
			}
			for _, f := range o.sourcesOf(ctx, workload) {
				add(f)
			}
		}
		for _, f := range o.automations(ctx, t.Namespace) {
			add(f)
		}
	}
	return out
}

// sourcesOf are where the content of a workload comes from.
func (o *GetOptions) sourcesOf(ctx context.Context, workload *unstructured.Unstructured) []feed {
	if url, _, _ := unstructured.NestedString(workload.Object, "spec", "source", "git", "url"); url != "" {
		branch, _, _ := unstructured.NestedString(workload.Object, "spec", "source", "git", "branch")
		return []feed{{"git", workload.GetKind() + "/" + workload.GetName(), url + " " + branch}}
	}
	var out []feed
	for _, ref := range versions.SourcesOf(workload) {
		source, err := o.get(ctx, ref.Kind, ref.Namespace, ref.Name)
		if err != nil || source == nil {
			out = append(out, feed{"source", ref.Kind.Kind + "/" + ref.Name, unread(err)})
			continue
		}
		url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
		out = append(out, feed{"source", ref.Kind.Kind + "/" + ref.Name, url})
	}
	return out
}

func unread(err error) string {
	if err == nil {
		return "(there is none)"
	}
	return "(" + err.Error() + ")"
}

// automations are the image automations of a namespace.
func (o *GetOptions) automations(ctx context.Context, namespace string) []feed {
	mapping, err := o.mapper.RESTMapping(imageAutomation)
	if err != nil {
		return nil // nobody has defined them
	}
	list, err := o.client.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return []feed{{"image automation", namespace, unread(err)}}
	}
	var out []feed
	for i := range list.Items {
		source, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "sourceRef", "name")
		out = append(out, feed{"image automation", list.Items[i].GetName(), "writes to GitRepository/" + source})
	}
	return out
}

// get reads an object, nil if there is none or nobody has defined its kind.
func (o *GetOptions) get(ctx context.Context, kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, error) {
	mapping, err := o.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out, err := o.client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}
