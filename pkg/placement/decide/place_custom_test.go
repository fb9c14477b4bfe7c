package decide_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

func TestPlaceCustom(t *testing.T) {
	const v1, v1beta1 = "Gizmo.v1.example.com", "Gizmo.v1beta1.example.com"
	for name, test := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		versions []string
		want     placement.Decision
		message  string
	}{
		"a pin to one chooses it, also without nodes": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 0).NoNodes()},
			request:  build.Gizmo().Pinned("west"),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
		"a pin to several has a copy in each": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 9), build.Cluster("west", 0)},
			request:  build.Gizmo().Pinned("east", "west").KeptTogether(),
			want:     build.Shares("east", 1, "west", 1),
			message:  "placed on east and west",
		},
		"a policy chooses one": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 3), build.Cluster("west", 9)},
			request:  build.Gizmo().Selecting("east", "west"),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
		"a policy that divides chooses one too, as there is nothing to divide": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 3), build.Cluster("west", 9)},
			request:  build.Gizmo().DividedBy(v1alpha1.ByEven),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
		"a cluster that does not serve the kind is left out, and the reason told": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Serving("Pod.v1"), build.Cluster("west", 9).Serving(v1)},
			request:  build.Gizmo().Pinned("east", "west"),
			want:     build.Shares("west", 1),
			message:  "placed on west; not on 1 of 2 chosen clusters: 1 does not serve Gizmo.v1.example.com",
		},
		"where nobody serves the kind it is not placed": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Serving("Pod.v1"), build.Cluster("west", 9).Serving(v1)},
			request:  build.Gizmo().Pinned("east"),
			want:     nil,
			message:  "0/2 clusters can run it: 1 does not serve Gizmo.v1.example.com, 1 is not pinned",
		},
		"another version will do": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Serving(v1beta1), build.Cluster("west", 9).Serving(v1)},
			request:  build.Gizmo().Pinned("east", "west"),
			versions: []string{"v1beta1"},
			want:     build.Shares("east", 1, "west", 1),
			message:  "placed on east and west",
		},
		"what runs stays in a cordoned cluster": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)},
			request:  build.Gizmo().Selecting("east", "west").On(build.Shares("east", 1)),
			want:     build.Shares("east", 1),
			message:  "placed on east",
		},
		"it leaves a cluster that is not pinned any more": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Gizmo().Pinned("west").On(build.Shares("east", 1)),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
		"it follows its namespace where a policy keeps that together": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 3)},
			request:  build.Gizmo().KeptTogether().Near(placement.Neighbours{"west": 2}),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Workload.Versions = test.versions
			got := decide.Place(build.Snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) || got.Message() != test.message {
				t.Errorf("placed %s: %q, want %s: %q", got.Decision, got.Message(), test.want, test.message)
			}
		})
	}
	t.Run("a policy that duplicates has a copy in each", func(t *testing.T) {
		r := build.Gizmo().Selecting("east", "west").Duplicated()
		got := decide.Place(build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 9)), r.Request)
		if want := build.Shares("east", 1, "west", 1); !got.Decision.Equal(want) {
			t.Errorf("placed %s, want %s", got.Decision, want)
		}
	})
}

func TestPlaceADescribedCustomObject(t *testing.T) {
	const kind = "Rollout.example.com"
	for name, test := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     placement.Decision
		message  string
	}{
		"it goes whole to the cluster with room for all of it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 3), build.Cluster("west", 9)},
			request:  build.Rollout(4).Listing(kind),
			want:     build.Shares("west", 4),
			message:  "placed on west",
		},
		"without room it waits, and says for what": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0), build.Cluster("west", 0)},
			request:  build.Rollout(4).Listing(kind),
			message:  "0/2 clusters can run it: 2 lack cpu (need 1, free 0)",
		},
		"a cluster without nodes is none for it": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0).NoNodes(), build.Cluster("west", 9)},
			request:  build.Rollout(1).Listing(kind),
			want:     build.Shares("west", 1),
			message:  "placed on west",
		},
		"a pin to several says where it may run": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("north", 19), build.Cluster("west", 3)},
			request:  build.Rollout(2).Pinned("east", "west"),
			want:     build.Shares("east", 2),
			message:  "placed on east",
		},
		"a policy that divides leaves it whole if the kind may not be divided": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 4)},
			request:  build.Rollout(4).Listing(kind).DividedBy(v1alpha1.ByEven),
			want:     build.Shares("east", 4),
			message:  "placed on east",
		},
		"a policy that divides and lists the kind divides one that may be": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 4)},
			request:  build.Rollout(4).Divisible().DividedBy(v1alpha1.ByEven).Listing(kind),
			want:     build.Shares("east", 2, "west", 2),
			message:  "placed on east (2) and west (2)",
		},
		"a kind of that name in another group is not meant": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 4)},
			request:  build.Rollout(4).Divisible().DividedBy(v1alpha1.ByEven).Listing("Rollout", "Rollout.other.example.com"),
			want:     build.Shares("east", 4),
			message:  "placed on east",
		},
		"a policy that duplicates has all of it in each": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 4)},
			request:  build.Rollout(3).Listing(kind).Duplicated(),
			want:     build.Shares("east", 3, "west", 3),
			message:  "placed on east (3) and west (3)",
		},
		"a class that a further template names keeps it from where there is none": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Offering("high"), build.Cluster("west", 19).Offering()},
			request:  besides(build.Rollout(2).Listing(kind), "high"),
			want:     build.Shares("east", 2),
			message:  "placed on east",
		},
		"what runs leaves a cluster that is being drained": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), build.Cluster("west", 9)},
			request:  build.Rollout(2).Listing(kind).On(build.Shares("east", 2)).Leaving("east"),
			want:     build.Shares("west", 2),
			message:  "placed on west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(build.Snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) || got.Message() != test.message {
				t.Errorf("placed %s: %q, want %s: %q", got.Decision, got.Message(), test.want, test.message)
			}
		})
	}
}

// besides has further pods of a PriorityClass.
func besides(b *build.RequestBuilder, class string) *build.RequestBuilder {
	b.Workload.Beside = []*corev1.PodTemplateSpec{{Spec: corev1.PodSpec{PriorityClassName: class}}}
	return b
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
			got, err := rules.Select(build.Gizmo().Workload, []*rules.Policy{rules.WidePolicyOf(&policy)})
			if err != nil || (got != nil) != test.want {
				t.Errorf("policy %v, error %v, want %t", got, err, test.want)
			}
		})
	}
}

func TestACustomObjectDoesNotLeaveASilentCluster(t *testing.T) {
	east := build.Cluster("east", 9).Unreachable().Taint(v1alpha1.TaintUnreachable, "", corev1.TaintEffectNoExecute)
	drained := build.Cluster("east", 9).Taint("example.com/broken", "", corev1.TaintEffectNoExecute)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	request := build.Gizmo().Selecting("east", "west").On(build.Shares("east", 1)).Request
	if got := rules.Leave(build.Snapshot(east, build.Cluster("west", 9)), &request, time.Minute, now); len(got.Now) > 0 || !got.Next.IsZero() {
		t.Errorf("it leaves a silent cluster: %+v", got)
	}
	if got := rules.Leave(build.Snapshot(drained, build.Cluster("west", 9)), &request, time.Minute, now); !got.Now["east"] {
		t.Errorf("it does not leave a tainted one: %+v", got)
	}
}

func TestADescribedCustomObjectLeavesASilentClusterAsWorkloadsDo(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	east := build.Cluster("east", 9).Unreachable().Taint(v1alpha1.TaintUnreachable, "", corev1.TaintEffectNoExecute)
	request := build.Rollout(2).Selecting("east", "west").On(build.Shares("east", 2)).Request
	if got := rules.Leave(build.Snapshot(east, build.Cluster("west", 9)), &request, time.Minute, now); !got.Now["east"] || !got.Lost["east"] {
		t.Errorf("it stays in a silent cluster: %+v", got)
	}
}
