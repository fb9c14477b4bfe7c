package copies

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// nothing is a logical cluster without custom resources.
type nothing struct{}

func (nothing) Get(Key) (Kind, *metav1.PartialObjectMetadata, bool) { return Kind{}, nil, true }
func (nothing) Concerns(string) []Key                               { return nil }
func (nothing) Changed(Key, bool)                                   {}

var (
	gizmos = Kind{Resource: schema.GroupResource{Group: "example.com", Resource: "gizmos"}, Name: "Gizmo", Versions: []string{"v1"}}
	gizmo  = Key{gizmos.Resource, "shop", "a"}
)

// loopOf is the loop of cluster "east", with the events that it writes. Nothing runs it.
func loopOf(t *testing.T) (*Loop, *record.FakeRecorder) {
	t.Helper()
	events := record.NewFakeRecorder(10)
	loops := New(Options{Above: nothing{}, Recorder: events, LogicalCluster: func() string { return "logical" }})
	l := newLoop(t.Context(), loops, &connection.Connection{Name: "east"})
	t.Cleanup(l.queue.ShutDown)
	return l, events
}

// A webhook below that cannot be called is answered like a storage that fails for a moment.
func TestErrorInsideAClusterIsToldWhenItLasts(t *testing.T) {
	l, events := loopOf(t)
	seen := look{key: gizmo, kind: gizmos, above: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}}
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for range 3 {
		if err := l.failed(seen, broken); err == nil {
			t.Fatal("the step is not tried again")
		}
		l.queue.AddRateLimited(gizmo)
	}
	if problem := l.stateOf(gizmo).problem; problem != "" {
		t.Errorf("problem %q after a moment", problem)
	}
	for range 10 {
		_ = l.failed(seen, broken)
		l.queue.AddRateLimited(gizmo)
	}
	if got, want := l.stateOf(gizmo).problem, broken.Error(); got != want {
		t.Errorf("problem %q, want %q", got, want)
	}
	if got, want := <-events.Events, `Warning ProjectionFailed cluster "east": `+broken.Error(); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

func TestPlan(t *testing.T) {
	above := func(annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "above", Annotations: annotations}}
	}
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "a",
		"labels": map[string]any{v1alpha1.LabelLogicalCluster: "logical"},
		"annotations": map[string]any{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "a", v1alpha1.AnnotationUID: "above",
		},
	}}}
	if _, ours := projection.OriginOf(live); !ours {
		t.Fatal("the copy is not ours")
	}
	for name, test := range map[string]struct {
		seen look
		want task
	}{
		"what is to be there is projected":                {look{kind: gizmos, known: true, wanted: true, watch: &watch{}}, taskProject},
		"nothing changes while its revision is not known": {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, unread: held.ErrNotYet}, taskHold},
		"nor where its revision has nothing of it":        {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, live: live, hold: held.Hold{Absent: true}}, taskKeep},
		"nothing while it is not known what should be":    {look{kind: gizmos}, taskNothing},
		"nothing until everything there was seen":         {look{kind: gizmos, known: true, wanted: true}, taskNothing},
		"a kind that is gone is dropped":                  {look{known: true}, taskDrop},
		"what is nowhere here is forgotten":               {look{kind: gizmos, known: true}, taskForget},
		"a cluster that does not show it is told of":      {look{kind: gizmos, known: true, wanted: true, refusal: "no right"}, taskRefuse},
		"but not of what it never had":                    {look{kind: gizmos, known: true, concerned: true, refusal: "no right", above: above(nil)}, taskForget},
		"what is not to be there is deleted":              {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live}, taskDelete},
		"also when it has moved and has arrived":          {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, above: above(nil), arrived: true}, taskDelete},
		"it stays until it has arrived elsewhere":         {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, above: above(nil)}, taskNothing},
		"what a cluster that leaves keeps is let go of":   {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, orphans: true}, taskOrphan},
		"nothing in a cluster that is given up":           {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, givenUp: true}, taskNothing},
		"what is gone there is forgotten":                 {look{kind: gizmos, known: true, concerned: true, watch: &watch{}}, taskForget},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := loopOf(t)
			test.seen.key = gizmo
			if got := l.plan(test.seen); got.task != test.want {
				t.Errorf("%s (%s), want %s", got.task, got.why, test.want)
			}
		})
	}
}

func TestOnlyNewsIsReported(t *testing.T) {
	above := func(generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	}
	for name, test := range map[string]struct {
		last, next state
		want       bool
	}{
		"the first look":                 {state{}, state{above: above(1)}, true},
		"the same again":                 {state{above: above(1)}, state{above: above(1), accepted: 7}, false},
		"another generation":             {state{above: above(1)}, state{above: above(2)}, true},
		"another revision":               {state{above: above(1)}, state{above: above(1), hold: held.Hold{Revision: identity.Revision{Name: "web-v2"}}}, true},
		"a problem":                      {state{above: above(1)}, state{problem: "no"}, true},
		"the same problem":               {state{problem: "no"}, state{problem: "no"}, false},
		"nothing there, seen at first":   {state{}, state{absent: true}, true},
		"nothing there, seen once again": {state{absent: true}, state{absent: true}, false},
	} {
		if got := test.next.news(test.last); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestOtherRoutesAreNews(t *testing.T) {
	above := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	marked := func(mark string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{}}
		out.SetAnnotations(map[string]string{delivery.AnnotationRoutes: mark})
		return out
	}
	with := func(mark string) state { return state{above: above, desired: marked(mark)} }
	if !with("2").news(with("1")) || !with("").news(with("1")) || with("1").news(with("1")) {
		t.Error("it is not told, or told for nothing, what the cluster holds otherwise")
	}
}
