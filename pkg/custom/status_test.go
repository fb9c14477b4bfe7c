package custom

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

func cluster(ready metav1.ConditionStatus, manner string) *v1alpha1.Cluster {
	out := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: ready}}
	if manner != "" {
		out.DeletionTimestamp, out.Annotations = &metav1.Time{}, map[string]string{v1alpha1.AnnotationRemove: manner}
	}
	return out
}

// TestWhatIsKnownOfACluster is about what keeps an object from being let go, and from having its status written.
func TestWhatIsKnownOfACluster(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gizmo"}}
	has := summary.CustomReport{Generation: 3, Live: live}
	had := summary.CustomCluster{Generation: 2, State: "Up"}
	for name, test := range map[string]struct {
		cluster       *v1alpha1.Cluster
		seen          copies.Sighting
		last          summary.CustomCluster
		decided       bool
		held, pending bool
		want          *summary.CustomReport // nil for no report
	}{
		"one that has its copy": {
			cluster: cluster("True", ""), seen: copies.Sighting{CustomReport: has, Known: true, Compared: true}, decided: true,
			held: true, want: &has,
		},
		"one that has not compared its copy yet": {
			cluster: cluster("True", ""), seen: copies.Sighting{CustomReport: summary.CustomReport{Live: live}, Known: true}, decided: true,
			held: true, pending: true, want: &summary.CustomReport{Live: live},
		},
		"one that is to have a copy and has none": {
			cluster: cluster("True", ""), seen: copies.Sighting{Known: true}, decided: true, want: &summary.CustomReport{},
		},
		"one that has none and is to have none": {cluster: cluster("True", ""), seen: copies.Sighting{Known: true}, last: had},
		"one that is to have none and has a copy": {
			cluster: cluster("True", ""), seen: copies.Sighting{CustomReport: has, Known: true}, held: true, want: &has,
		},
		"a ready one that was not asked yet": {
			cluster: cluster("True", ""), last: had, held: true, pending: true, want: &summary.CustomReport{Generation: 2, Stale: true},
		},
		"a silent one that was never asked": {
			cluster: cluster("Unknown", ""), last: had, held: true, want: &summary.CustomReport{Generation: 2, Stale: true},
		},
		"a silent one that may have been given a copy": {
			cluster: cluster("Unknown", ""), held: true, want: &summary.CustomReport{Stale: true},
		},
		"one that has turned silent": {
			cluster: cluster("Unknown", ""), seen: copies.Sighting{CustomReport: has, Known: true, Compared: true}, decided: true,
			held: true, want: &summary.CustomReport{Generation: 3, Live: live, Stale: true},
		},
		"one that is not ready answers all the same": {
			cluster: cluster("False", ""), seen: copies.Sighting{CustomReport: has, Known: true, Compared: true}, decided: true, held: true, want: &has,
		},
		"one that never let us look": {
			cluster: cluster("True", ""), seen: copies.Sighting{CustomReport: summary.CustomReport{Problem: "no right"}, Known: true, Blind: true}, decided: true,
			want: &summary.CustomReport{Problem: "no right"},
		},
		"one that lets us look no more": {
			cluster: cluster("True", ""), seen: copies.Sighting{CustomReport: summary.CustomReport{Problem: "no right"}, Known: true, Blind: true}, last: had,
			held: true, want: &summary.CustomReport{Problem: "no right", Generation: 2},
		},
		"one that was given up":   {cluster: cluster("Unknown", v1alpha1.RemoveForce), last: had, decided: true},
		"one that is left behind": {cluster: cluster("True", v1alpha1.RemoveOrphan), seen: copies.Sighting{Known: true}, last: had},
	} {
		t.Run(name, func(t *testing.T) {
			got := gathered{reports: map[string]summary.CustomReport{}}
			got.add(test.cluster, test.seen, test.last, test.decided)
			if got.held != test.held || got.pending != test.pending {
				t.Errorf("held %t, pending %t, want %t, %t", got.held, got.pending, test.held, test.pending)
			}
			want := map[string]summary.CustomReport{}
			if test.want != nil {
				want["east"] = *test.want
			}
			if diff := cmp.Diff(want, got.reports); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheVersionOfTheStatusIsThatOfAllCopies(t *testing.T) {
	for _, test := range []struct {
		versions []string
		want     string
	}{{nil, ""}, {[]string{"v1"}, "v1"}, {[]string{"v1", "v1"}, "v1"}, {[]string{"v1", "v2"}, ""}} {
		if got := (&gathered{versions: test.versions}).version(); got != test.want {
			t.Errorf("copies in %v: version %q, want %q", test.versions, got, test.want)
		}
	}
}

func TestWhatSomebodyHoldsIsNotLetGoBefore(t *testing.T) {
	for name, test := range map[string]struct {
		finalizers []any
		want       bool
	}{
		"it is let go when we alone hold it": {[]any{v1alpha1.FinalizerProjection}, true},
		"not while somebody else does":       {[]any{"example.com/x", v1alpha1.FinalizerProjection}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, _ := decider(t, "", nil)
			k := gizmos
			gizmo := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Gizmo",
				"metadata": map[string]any{
					"namespace": "shop", "name": "one", "uid": "u1", "deletionTimestamp": "2026-11-20T12:00:00Z", "finalizers": test.finalizers,
					// A cluster that is gone: nothing below holds it any more.
					"annotations": map[string]any{v1alpha1.AnnotationPlacement: `{"north":{"replicas":1}}`},
				},
			}}
			client.PrependReactor("get", "gizmos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, gizmo, nil })
			o := &metav1.PartialObjectMetadata{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(gizmo.Object, o); err != nil {
				t.Fatal(err)
			}
			if err := c.report(t.Context(), k, copies.Key{Resource: k.Resource, Namespace: "shop", Name: "one"}, o); err != nil {
				t.Fatal(err)
			}
			if got := patchOf(t, client) != nil; got != test.want {
				t.Errorf("let go: %t, want %t", got, test.want)
			}
		})
	}
}
