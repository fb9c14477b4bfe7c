package copies

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// described is gizmos with a pod template, and replicas that may be divided.
func described() Kind {
	out := gizmos
	out.Paths = projection.PodPathsOf(&v1alpha1.CustomWorkload{PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas", Divisible: true})
	return out
}

func withPods(image string, replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "serve", "image": image}},
	}}}}}
}

func TestACopyWaitsForWhatItsPodsNeed(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		kind    Kind
		live    *unstructured.Unstructured
		problem string
		waits   bool
		err     error
		tries   int
		held    bool
		told    bool
		want    error
	}{
		"not one that nobody describes":                    {kind: gizmos, problem: "no Secret"},
		"one that lacks nothing goes on":                   {kind: described()},
		"one whose Secret is on its way waits in silence":  {kind: described(), waits: true, tries: 9, held: true, want: writer.ErrNotYet},
		"so does one whose Secret may be made at any time": {kind: described(), problem: "no Secret", held: true, want: writer.ErrNotYet},
		"what lasts is told":                               {kind: described(), problem: "no Secret", tries: 3, held: true, told: true, want: writer.ErrNotYet},
		"what runs of the same template is left alone":     {kind: described(), live: withPods("serve:2", 3), problem: "no Secret"},
		"another template is held back":                    {kind: described(), live: withPods("serve:1", 3), problem: "no Secret", held: true, want: writer.ErrNotYet},
		"and so are more replicas":                         {kind: described(), live: withPods("serve:2", 2), problem: "no Secret", held: true, want: writer.ErrNotYet},
		"an error is passed on":                            {kind: described(), err: broken, held: true, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			l, events := loopOf(t)
			l.Lacks = func(_ context.Context, cluster string, w identity.Workload, _ projection.Object) (string, bool, error) {
				if cluster != "east" || w.Kind.Resource != described().Row("v1").Resource {
					t.Errorf("%s is asked about %v", cluster, w.Kind.Resource)
				}
				return test.problem, test.waits, test.err
			}
			for range test.tries {
				l.queue.AddRateLimited(gizmo)
			}
			seen := look{
				key: gizmo, kind: test.kind, live: test.live, known: true, wanted: true, watch: &watch{version: "v1"}, made: made{desired: withPods("serve:2", 3)},
				above: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}},
			}
			var err error
			held := false
			if p := l.plan(seen); slices.Contains(p.First, steps.NeedUses) {
				var there bool
				there, err = l.meet(t.Context(), seen, p, steps.NeedUses)
				held = !there
			}
			if held != test.held || !errors.Is(err, test.want) {
				t.Errorf("held %t, error %v; want %t, %v", held, err, test.held, test.want)
			}
			if told := len(events.Events) > 0; told != test.told || (l.states.Of(gizmo).Problem != "") != test.told {
				t.Errorf("the user is told: %t", told)
			}
		})
	}
}

// The decision says what a cluster gets of what is divided, and changes without the generation.
func TestAnotherShareIsAnotherProjection(t *testing.T) {
	above := func(decision string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 3, Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision}}}
	}
	if sameProjection(above(`{"east":{"replicas":3}}`), above(`{"east":{"replicas":1},"west":{"replicas":2}}`)) {
		t.Error("it would not be projected anew")
	}
	if !sameProjection(above(`{"east":{"replicas":3}}`), above(`{"east":{"replicas":3}}`)) {
		t.Error("it is projected for nothing")
	}
}
