package decide_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

func TestRefusalsCountClustersByReason(t *testing.T) {
	for name, tc := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     string
	}{
		"no cluster": {
			request: build.Deployment(1),
			want:    "0/0 clusters can run it: no cluster has joined",
		},
		"cordoned and full ones, of which the emptiest is quoted": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("a", 0).Having(corev1.ResourceCPU, 1500), build.Cluster("b", 1), build.Cluster("c", 9).Cordoned(),
			},
			request: build.Deployment(2).Needing(corev1.ResourceCPU, 4000),
			want:    "0/3 clusters can run it: 1 is cordoned, 2 lack cpu (need 4, free 1.5)",
		},
		"memory in readable units": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).Having(corev1.ResourceMemory, 3<<30+600<<20)},
			request:  build.Deployment(2).Needing(corev1.ResourceMemory, 4<<30),
			want:     "0/1 clusters can run it: 1 lacks memory (need 4Gi, free 3.58Gi)",
		},
		"amounts that read the same are exact": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).Having(corev1.ResourceMemory, 4<<30)},
			request:  build.Deployment(2).Needing(corev1.ResourceMemory, 4<<30+1),
			want:     "0/1 clusters can run it: 1 lacks memory (need 4294967297, free 4294967296)",
		},
		"what is overcommitted has nothing free": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", -3)},
			request:  build.Deployment(2),
			want:     "0/1 clusters can run it: 1 lacks cpu (need 1, free 0)",
		},
		"a resource that is not there": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9)},
			request:  build.Deployment(2).Needing("example.com/gpu", 2),
			want:     "0/1 clusters can run it: 1 lacks example.com/gpu (need 2, free 0)",
		},
		"health": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("a", 9).NotReady().Says("etcd is slow"), build.Cluster("b", 9).Unreachable(), build.Cluster("c", 9).Unreachable(),
			},
			request: build.Deployment(2),
			want:    "0/3 clusters can run it: 1 is not ready, 2 are unreachable",
		},
		"taints": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("a", 9).Taint("gpu", "true", corev1.TaintEffectNoSchedule),
				build.Cluster("b", 9).Taint("gpu", "true", corev1.TaintEffectNoExecute),
			},
			request: build.Deployment(2),
			want:    "0/2 clusters can run it: 2 have the untolerated taint {gpu: true}",
		},
		"a taint that repeats the condition is not told twice": {
			clusters: []*build.ClusterBuilder{
				build.Cluster("a", 9).Unreachable().Taint(v1alpha1.TaintUnreachable, "", corev1.TaintEffectNoExecute),
			},
			request: build.Deployment(2),
			want:    "0/1 clusters can run it: 1 is unreachable",
		},
		"kinds": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).Serving("Pod.v1", "Job.v1.batch"), build.Cluster("b", 9).Serving("Pod.v1")},
			request:  build.Deployment(2),
			want:     "0/2 clusters can run it: 2 do not serve Deployment.v1.apps",
		},
		"nodes": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9).NoNodes(), build.Cluster("b", 9).NoNodes()},
			request:  build.Deployment(2),
			want:     "0/2 clusters can run it: 2 have no ready node",
		},
		"several names that have not joined": {
			clusters: []*build.ClusterBuilder{build.Cluster("a", 9)},
			request:  build.Deployment(2).Pinned("venus", "mars"),
			want: `0/1 clusters can run it: cluster "mars" has not joined, cluster "venus" has not joined, ` +
				`1 is not pinned`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(build.Snapshot(tc.clusters...), tc.request.Request)
			if got.Message() != tc.want {
				t.Errorf("\n got: %s\nwant: %s", got.Message(), tc.want)
			}
			if len(got.Decision) != 0 || got.Unplaced != tc.request.Workload.Replicas {
				t.Errorf("placed %s, %d unplaced", got.Decision, got.Unplaced)
			}
		})
	}
}

func TestAPreferNoScheduleTaintKeepsNobodyAway(t *testing.T) {
	s := build.Snapshot(build.Cluster("a", 9).Taint("slow", "", corev1.TaintEffectPreferNoSchedule))
	if got := decide.Place(s, build.Deployment(1).Request); !got.Decision.Equal(build.Shares("a", 1)) {
		t.Error(got.Message())
	}
}

func TestVerdictsExplainEveryCluster(t *testing.T) {
	s := build.Snapshot(
		build.Cluster("east", 4), build.Cluster("north", 8).Cordoned().NotReady().Says("no answer"), build.Cluster("south", 8), build.Cluster("west", 8),
	)
	got := decide.Place(s, build.Deployment(6).Pinned("east", "west", "north", "mars").On(build.Shares("north", 1)).Request)
	want := []placement.Verdict{
		{Cluster: "east", Feasible: true, Score: 0, Fits: 4, Share: &placement.Share{Replicas: 2}},
		{Cluster: "mars", Reasons: []words.Reason{{Code: words.ReasonNotJoined}}},
		{
			Cluster: "north", Fits: 8, Share: &placement.Share{Replicas: 1},
			Reasons: []words.Reason{{Code: words.ReasonNotReady, Detail: "no answer"}, {Code: words.ReasonCordoned}},
		},
		{Cluster: "south", Fits: 8, Reasons: []words.Reason{{Code: words.ReasonNotPinned}}},
		{Cluster: "west", Feasible: true, Score: 25, Fits: 8, Share: &placement.Share{Replicas: 3}},
	}
	if !reflect.DeepEqual(got.Verdicts, want) {
		t.Errorf("\n got: %+v\nwant: %+v", got.Verdicts, want)
	}
	if text := got.Verdicts[2].Reasons[0].String(); text != "is not ready (no answer)" {
		t.Errorf("reason reads %q", text)
	}
	if got.Strategy != placement.ByCapacity {
		t.Errorf("strategy %q", got.Strategy)
	}
}

func TestMessageNamesFewClusters(t *testing.T) {
	var clusters []*build.ClusterBuilder
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"} {
		clusters = append(clusters, build.Cluster(name, 5))
	}
	got := decide.Place(build.Snapshot(clusters...), build.Deployment(1).Duplicated().Request).Message()
	want := "placed on a (1), b (1), c (1), d (1), e (1), f (1), g (1), h (1) and 3 more clusters"
	if got != want {
		t.Errorf("\n got: %s\nwant: %s", got, want)
	}
}

func TestReadyIsUnknownUntilACondition(t *testing.T) {
	got := placement.Observe(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, placement.Load{})
	if got.Ready != metav1.ConditionUnknown || got.Free != nil {
		t.Errorf("got %+v", got)
	}
}
