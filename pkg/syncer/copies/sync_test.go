package copies

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
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
	if problem := l.states.Of(gizmo).Problem; problem != "" {
		t.Errorf("problem %q after a moment", problem)
	}
	for range 10 {
		_ = l.failed(seen, broken)
		l.queue.AddRateLimited(gizmo)
	}
	if got, want := l.states.Of(gizmo).Problem, broken.Error(); got != want {
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
		want steps.Task
	}{
		"what is to be there is projected":                {look{kind: gizmos, known: true, wanted: true, watch: &watch{version: "v1"}, made: made{desired: live}}, steps.Project},
		"nothing changes while its revision is not known": {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, unread: held.ErrNotYet}, steps.Hold},
		"nor where its revision has nothing of it":        {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, live: live, hold: held.Hold{Absent: true}}, steps.Keep},
		"nothing while it is not known what should be":    {look{kind: gizmos}, steps.Nothing},
		"nothing until everything there was seen":         {look{kind: gizmos, known: true, wanted: true}, steps.Nothing},
		"a kind that is gone is dropped":                  {look{known: true}, steps.Drop},
		"what is nowhere here is forgotten":               {look{kind: gizmos, known: true}, steps.Forget},
		"a cluster that does not show it is told of":      {look{kind: gizmos, known: true, wanted: true, refusal: "no right"}, steps.Refuse},
		"but not of what it never had":                    {look{kind: gizmos, known: true, concerned: true, refusal: "no right", above: above(nil)}, steps.Forget},
		"what is not to be there is deleted":              {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live}, steps.Delete},
		"also when it has moved and has arrived":          {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, above: above(nil), arrived: true}, steps.Delete},
		"it stays until it has arrived elsewhere":         {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, above: above(nil)}, steps.Nothing},
		"what a cluster that leaves keeps is let go of":   {look{kind: gizmos, known: true, concerned: true, watch: &watch{}, live: live, orphans: true}, steps.Orphan},
		"nothing in a cluster that is given up":           {look{kind: gizmos, known: true, wanted: true, watch: &watch{}, givenUp: true}, steps.Nothing},
		"what is gone there is forgotten":                 {look{kind: gizmos, known: true, concerned: true, watch: &watch{}}, steps.Forget},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := loopOf(t)
			test.seen.key = gizmo
			if got := l.plan(test.seen); got.Task != test.want {
				t.Errorf("%s (%s), want %s", got.Task, got.Why, test.want)
			}
		})
	}
}

// TestHowACopyIsMade is about what the plan says of it before anything is done.
func TestHowACopyIsMade(t *testing.T) {
	above := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "above", Generation: 3}}
	copyOf := func(image string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := withPods(image, 3)
		out.SetAPIVersion("example.com/v1")
		out.SetKind("Gizmo")
		out.SetNamespace("shop")
		out.SetName("a")
		out.SetUID("copy")
		out.SetGeneration(7)
		out.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: "logical"})
		out.SetAnnotations(map[string]string{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "a", v1alpha1.AnnotationUID: "above", v1alpha1.AnnotationProjection: "hash-of-" + image,
		})
		for _, c := range change {
			c(out)
		}
		return out
	}
	altered := func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(9) }
	for name, test := range map[string]struct {
		kind     Kind
		live     *unstructured.Unstructured
		accepted int64
		want     string
	}{
		"it is made": {kind: gizmos, want: "project (Create) after its namespace: the cluster has none"},
		"one with pods waits for what these name": {
			kind: described(), want: "project (Create) after its namespace, what it names: the cluster has none",
		},
		"one that runs by the same template does not": {kind: described(), live: copyOf("serve:2"), want: "project (Nothing) after its namespace"},
		"one that was changed there is put back":      {kind: gizmos, live: copyOf("serve:2", altered), want: "project (Apply) after its namespace"},
		"unless that is what the cluster makes of it": {
			kind: gizmos, live: copyOf("serve:2", altered), accepted: 7, want: "project (Nothing) after its namespace: it is what the cluster makes of it",
		},
		"another one is not": {kind: gizmos, live: copyOf("serve:1"), accepted: 7, want: "project (Apply) after its namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := loopOf(t)
			l.Lacks = func(context.Context, string, identity.Workload, projection.Object) (string, bool, error) {
				return "", false, nil
			}
			got := l.plan(look{
				key: gizmo, kind: test.kind, known: true, wanted: true, above: above, watch: &watch{version: "v1"}, live: test.live,
				made: made{desired: copyOf("serve:2"), accepted: test.accepted},
			}).String()
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("plans to %s\nwant     %s", got, test.want)
			}
		})
	}
}

func TestOnlyNewsIsReported(t *testing.T) {
	above := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "above", Generation: 1}}
	at := func(hold held.Hold) states.State { return look{above: above, hold: hold}.state() }
	for name, test := range map[string]struct {
		last, next states.State
		want       bool
	}{
		"the first look":                 {states.State{}, states.State{Generation: 1}, true},
		"the same again":                 {states.State{Generation: 1}, states.State{Generation: 1}, false},
		"another generation":             {states.State{Generation: 1}, states.State{Generation: 2}, true},
		"another revision":               {at(held.Hold{}), at(held.Hold{Revision: identity.Revision{Name: "web-v2"}}), true},
		"a revision that has it no more": {at(held.Hold{}), at(held.Hold{Absent: true}), true},
		"nothing there, seen at first":   {states.State{}, states.State{Copy: states.Copy{Absent: true}}, true},
		"nothing there, seen once again": {states.State{Copy: states.Copy{Absent: true}}, states.State{Copy: states.Copy{Absent: true}}, false},
		"other routes":                   {states.State{Hash: "1"}, states.State{Hash: "1", Copy: states.Copy{Routes: "2"}}, true},
	} {
		l, _ := loopOf(t)
		l.states.Set(gizmo, test.last)
		told := 0
		l.Above = tells{&told}
		if l.done(gizmo, test.next); (told > 0) != test.want {
			t.Errorf("%s is told: %t", name, told > 0)
		}
	}
}

// tells counts what it is told of.
type tells struct{ times *int }

func (tells) Get(Key) (Kind, *metav1.PartialObjectMetadata, bool) { return Kind{}, nil, true }
func (tells) Concerns(string) []Key                               { return nil }
func (c tells) Changed(Key, bool)                                 { *c.times++ }

// What is there is read whole again only if it may give another projection.
func TestTheLastProjectionIsRemembered(t *testing.T) {
	l, _ := loopOf(t)
	last := made{desired: withPods("serve:1", 1), accepted: 7}
	l.made.note(gizmo, last)
	l.done(gizmo, states.State{UID: "above", Generation: 1, Hash: "1"})
	if l.made.of(gizmo) != last {
		t.Error("it is forgotten as soon as it is known")
	}
	l.fail(look{key: gizmo, kind: gizmos}, "Reason", "no right")
	if l.made.of(gizmo) != last {
		t.Error("it is made again for every try")
	}
	l.done(gizmo, states.State{Copy: states.Copy{Absent: true}})
	if l.made.of(gizmo) != (made{}) {
		t.Error("it is kept of what the cluster does not hold")
	}
}
