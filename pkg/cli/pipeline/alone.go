package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/tree"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// beside shows what clusters have by themselves. What belongs to that is asked for once, and only where there is something.
type beside struct {
	*GetOptions
	pipeline *weave.Pipeline

	asked   bool
	related *v1alpha1.PipelineRelated
	err     error
}

// ask returns what belongs to the objects of Flux that clusters have by themselves, as far as the user may get those.
func (b *beside) ask(ctx context.Context) (*v1alpha1.PipelineRelated, error) {
	if b.asked {
		return b.related, b.err
	}
	b.asked = true
	resource := v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourcePipelines)
	found, err := b.client.Resource(resource).Namespace(b.pipeline.Namespace).Get(ctx, b.pipeline.Name, metav1.GetOptions{}, v1alpha1.SubresourceRelated)
	if err != nil {
		b.err = fmt.Errorf("what belongs to it is not known: %w", err)
		return nil, b.err
	}
	out := &v1alpha1.PipelineRelated{}
	if b.err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, out); b.err == nil {
		b.related = out
	}
	return b.related, b.err
}

// write shows a workload that a cluster has by itself, or may have: hidden says why it is not known whether it is of the logical cluster, nil if it is known.
func (b *beside) write(ctx context.Context, t *weave.TargetStatus, w *weave.WorkloadStatus, hidden error) error {
	node := seen(t, w)
	var problems []error
	if hidden != nil {
		problems = append(problems, hidden)
	}
	switch related, err := b.ask(ctx); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		problems = append(problems, err)
	default:
		for i := range related.Workloads {
			if b.means(&related.Workloads[i], t, w) {
				belongs(node, &related.Workloads[i])
			}
		}
		for _, e := range related.Errors {
			if e.Group == b.group() && e.Environment == b.Related && e.Cluster == t.Name && e.Namespace == t.Namespace {
				problems = append(problems, errors.New(e.Message))
			}
		}
	}
	if err := node.Write(b.Out); err != nil {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintf(b.Out, "! %s\n", text.Line(problem.Error(), longest))
	}
	if hidden != nil {
		return nil
	}
	fmt.Fprintf(b.Out, "Cluster %q has %s by itself; its state is what the cluster lets pipelines see. To see more, look there: flux trace %s %s -n %s\n",
		text.Line(t.Name, longest), text.Line(w.Kind+"/"+w.Name, longest), strings.ToLower(text.Line(w.Kind, longest)), text.Line(w.Name, longest), text.Line(t.Namespace, longest))
	return nil
}

// group is the one that the pipeline is of.
func (b *beside) group() string { return b.pipeline.GroupVersionKind().Group }

// means reports whether what is told is about a workload of a target.
func (b *beside) means(told *v1alpha1.RelatedWorkload, t *weave.TargetStatus, w *weave.WorkloadStatus) bool {
	return told.Group == b.group() && told.Environment == b.Related && told.Cluster == t.Name &&
		told.Object.Kind == w.Kind && told.Object.Namespace == t.Namespace && told.Object.Name == w.Name
}

// belongs adds what belongs to an object of Flux. Of the state of all that nothing is known.
func belongs(node *tree.Node, of *v1alpha1.RelatedWorkload) {
	add := func(all []v1alpha1.RelatedObject, relation tree.Relation) {
		for _, one := range all {
			node.Children = append(node.Children, &tree.Node{
				Kind: text.Line(one.Kind, longest), Namespace: text.Line(one.Namespace, longest), Name: text.Line(one.Name, longest), Relation: relation, Health: tree.Unknown,
			})
		}
	}
	add(of.Sources, tree.Needs)
	add(of.Made, tree.Owns)
	if of.More {
		node.Children = append(node.Children, &tree.Node{Kind: "object", Name: "more", Relation: tree.Owns, Health: tree.Unknown, Status: "not shown"})
	}
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
