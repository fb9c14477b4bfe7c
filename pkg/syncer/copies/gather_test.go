package copies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
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
		seen          sighting
		last          summary.CustomCluster
		decided       bool
		held, pending bool
		want          *summary.CustomReport // nil for no report
	}{
		"one that has its copy": {
			cluster: cluster("True", ""), seen: sighting{CustomReport: has, known: true, compared: true}, decided: true,
			held: true, want: &has,
		},
		"one that has not compared its copy yet": {
			cluster: cluster("True", ""), seen: sighting{CustomReport: summary.CustomReport{Live: live}, known: true}, decided: true,
			held: true, pending: true, want: &summary.CustomReport{Live: live},
		},
		"one that is to have a copy and has none": {
			cluster: cluster("True", ""), seen: sighting{known: true}, decided: true, want: &summary.CustomReport{},
		},
		"one that has none and is to have none": {cluster: cluster("True", ""), seen: sighting{known: true}, last: had},
		"one that is to have none and has a copy": {
			cluster: cluster("True", ""), seen: sighting{CustomReport: has, known: true}, held: true, want: &has,
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
			cluster: cluster("Unknown", ""), seen: sighting{CustomReport: has, known: true, compared: true}, decided: true,
			held: true, want: &summary.CustomReport{Generation: 3, Live: live, Stale: true},
		},
		"one that is not ready answers all the same": {
			cluster: cluster("False", ""), seen: sighting{CustomReport: has, known: true, compared: true}, decided: true, held: true, want: &has,
		},
		"one that never let us look": {
			cluster: cluster("True", ""), seen: sighting{CustomReport: summary.CustomReport{Problem: "no right"}, known: true, blind: true}, decided: true,
			want: &summary.CustomReport{Problem: "no right"},
		},
		"one that lets us look no more": {
			cluster: cluster("True", ""), seen: sighting{CustomReport: summary.CustomReport{Problem: "no right"}, known: true, blind: true}, last: had,
			held: true, want: &summary.CustomReport{Problem: "no right", Generation: 2},
		},
		"one that was given up":   {cluster: cluster("Unknown", v1alpha1.RemoveForce), last: had, decided: true},
		"one that is left behind": {cluster: cluster("True", v1alpha1.RemoveOrphan), seen: sighting{known: true}, last: had},
	} {
		t.Run(name, func(t *testing.T) {
			got := Gathered{Reports: map[string]summary.CustomReport{}}
			got.add(test.cluster, test.seen, test.last, test.decided)
			if got.Held != test.held || got.Pending != test.pending {
				t.Errorf("held %t, pending %t, want %t, %t", got.Held, got.Pending, test.held, test.pending)
			}
			want := map[string]summary.CustomReport{}
			if test.want != nil {
				want["east"] = *test.want
			}
			if diff := cmp.Diff(want, got.Reports); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheVersionOfTheStatusIsThatOfAllCopies(t *testing.T) {
	for _, test := range []struct {
		versions, left []string
		want           string
	}{
		{nil, nil, ""}, {[]string{"v1"}, nil, "v1"}, {[]string{"v1", "v1"}, nil, "v1"}, {[]string{"v1", "v2"}, nil, ""},
		{[]string{"v1"}, []string{"v2"}, "v1"}, {nil, []string{"v2"}, "v2"}, {nil, []string{"v1", "v2"}, ""},
	} {
		if got := (&Gathered{versions: test.versions, left: test.left}).Version(); got != test.want {
			t.Errorf("copies in %v, others in %v: version %q, want %q", test.versions, test.left, got, test.want)
		}
	}
}
