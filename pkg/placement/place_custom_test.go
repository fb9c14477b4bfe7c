package placement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// gizmo is an object of a custom kind.
func gizmo() *requestBuilder {
	b := deployment(1)
	b.Workload.GVK.Group, b.Workload.GVK.Version, b.Workload.GVK.Kind = "example.com", "v1", "Gizmo"
	b.Workload.Division, b.Workload.Custom, b.Workload.Requests = Indivisible, true, nil
	return b
}

func TestPlaceCustom(t *testing.T) {
	const v1, v1beta1 = "Gizmo.v1.example.com", "Gizmo.v1beta1.example.com"
	for name, test := range map[string]struct {
		clusters []*clusterBuilder
		request  *requestBuilder
		versions []string
		want     Decision
		message  string
	}{
		"a pin to one chooses it, also without nodes": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 0).noNodes()},
			request:  gizmo().pinned("west"),
			want:     shares("west", 1),
			message:  "placed on west",
		},
		"a pin to several has a copy in each": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 0)},
			request:  gizmo().pinned("east", "west").keptTogether(),
			want:     shares("east", 1, "west", 1),
			message:  "placed on east and west",
		},
		"a policy chooses one": {
			clusters: []*clusterBuilder{cluster("east", 3), cluster("west", 9)},
			request:  gizmo().selecting("east", "west"),
			want:     shares("west", 1),
			message:  "placed on west",
		},
		"a policy that divides chooses one too, as there is nothing to divide": {
			clusters: []*clusterBuilder{cluster("east", 3), cluster("west", 9)},
			request:  gizmo().dividedBy(v1alpha1.ByEven),
			want:     shares("west", 1),
			message:  "placed on west",
		},
		"a cluster that does not serve the kind is left out, and the reason told": {
			clusters: []*clusterBuilder{cluster("east", 9).serving("Pod.v1"), cluster("west", 9).serving(v1)},
			request:  gizmo().pinned("east", "west"),
			want:     shares("west", 1),
			message:  "placed on west; not on 1 of 2 chosen clusters: 1 does not serve Gizmo.v1.example.com",
		},
		"where nobody serves the kind it is not placed": {
			clusters: []*clusterBuilder{cluster("east", 9).serving("Pod.v1"), cluster("west", 9).serving(v1)},
			request:  gizmo().pinned("east"),
			want:     nil,
			message:  "0/2 clusters can run it: 1 does not serve Gizmo.v1.example.com, 1 is not pinned",
		},
		"another version will do": {
			clusters: []*clusterBuilder{cluster("east", 9).serving(v1beta1), cluster("west", 9).serving(v1)},
			request:  gizmo().pinned("east", "west"),
			versions: []string{"v1beta1"},
			want:     shares("east", 1, "west", 1),
			message:  "placed on east and west",
		},
		"what runs stays in a cordoned cluster": {
			clusters: []*clusterBuilder{cluster("east", 9).cordoned(), cluster("west", 9)},
			request:  gizmo().selecting("east", "west").on(shares("east", 1)),
			want:     shares("east", 1),
			message:  "placed on east",
		},
		"it leaves a cluster that is not pinned any more": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)},
			request:  gizmo().pinned("west").on(shares("east", 1)),
			want:     shares("west", 1),
			message:  "placed on west",
		},
		"it follows its namespace where a policy keeps that together": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 3)},
			request:  gizmo().keptTogether().near(Neighbours{"west": 2}),
			want:     shares("west", 1),
			message:  "placed on west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Workload.Versions = test.versions
			got := Place(snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) || got.Message() != test.message {
				t.Errorf("placed %s: %q, want %s: %q", got.Decision, got.Message(), test.want, test.message)
			}
		})
	}
	t.Run("a policy that duplicates has a copy in each", func(t *testing.T) {
		r := gizmo().selecting("east", "west").duplicated()
		got := Place(snapshot(cluster("east", 9), cluster("west", 9)), r.Request)
		if want := shares("east", 1, "west", 1); !got.Decision.Equal(want) {
			t.Errorf("placed %s, want %s", got.Decision, want)
		}
	})
}

func TestAPolicySelectsACustomKindOnlyByItsFullName(t *testing.T) {
	for name, test := range map[string]struct {
		workloads *v1alpha1.WorkloadSelector
		want      bool
	}{
		"one for everything does not":         {nil, false},
		"one for every kind does not":         {&v1alpha1.WorkloadSelector{}, false},
		"one for a kind of that name doesn't": {&v1alpha1.WorkloadSelector{Kinds: []string{"Gizmo", "Job"}}, false},
		"one that lists it does":              {&v1alpha1.WorkloadSelector{Kinds: []string{"Job", "Gizmo.example.com"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := v1alpha1.ClusterPlacementPolicy{Spec: v1alpha1.ClusterPlacementPolicySpec{
				PlacementPolicySpec: v1alpha1.PlacementPolicySpec{Workloads: test.workloads},
			}}
			got, err := SelectPolicy(gizmo().Workload, nil, []v1alpha1.ClusterPlacementPolicy{policy})
			if err != nil || (got != nil) != test.want {
				t.Errorf("policy %v, error %v, want %t", got, err, test.want)
			}
		})
	}
}

func TestACustomObjectDoesNotLeaveASilentCluster(t *testing.T) {
	east := cluster("east", 9).unreachable().taint(v1alpha1.TaintUnreachable, "", corev1.TaintEffectNoExecute)
	drained := cluster("east", 9).taint("example.com/broken", "", corev1.TaintEffectNoExecute)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	request := gizmo().selecting("east", "west").on(shares("east", 1)).Request
	if got := snapshot(east, cluster("west", 9)).Leave(&request, time.Minute, now); len(got.Now) > 0 || !got.Next.IsZero() {
		t.Errorf("it leaves a silent cluster: %+v", got)
	}
	if got := snapshot(drained, cluster("west", 9)).Leave(&request, time.Minute, now); !got.Now["east"] {
		t.Errorf("it does not leave a tainted one: %+v", got)
	}
}
