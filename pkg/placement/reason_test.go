package placement

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestRefusalsCountClustersByReason(t *testing.T) {
	for name, tc := range map[string]struct {
		clusters []*clusterBuilder
		request  *requestBuilder
		want     string
	}{
		"no cluster": {
			request: deployment(1),
			want:    "0/0 clusters can run it: no cluster has joined",
		},
		"cordoned and full ones, of which the emptiest is quoted": {
			clusters: []*clusterBuilder{
				cluster("a", 0).free(corev1.ResourceCPU, 1500), cluster("b", 1), cluster("c", 9).cordoned(),
			},
			request: deployment(2).needing(corev1.ResourceCPU, 4000),
			want:    "0/3 clusters can run it: 1 is cordoned, 2 lack cpu (need 4, free 1.5)",
		},
		"memory in readable units": {
			clusters: []*clusterBuilder{cluster("a", 9).free(corev1.ResourceMemory, 3<<30+600<<20)},
			request:  deployment(2).needing(corev1.ResourceMemory, 4<<30),
			want:     "0/1 clusters can run it: 1 lacks memory (need 4Gi, free 3.58Gi)",
		},
		"amounts that read the same are exact": {
			clusters: []*clusterBuilder{cluster("a", 9).free(corev1.ResourceMemory, 4<<30)},
			request:  deployment(2).needing(corev1.ResourceMemory, 4<<30+1),
			want:     "0/1 clusters can run it: 1 lacks memory (need 4294967297, free 4294967296)",
		},
		"what is overcommitted has nothing free": {
			clusters: []*clusterBuilder{cluster("a", -3)},
			request:  deployment(2),
			want:     "0/1 clusters can run it: 1 lacks cpu (need 1, free 0)",
		},
		"a resource that is not there": {
			clusters: []*clusterBuilder{cluster("a", 9)},
			request:  deployment(2).needing("example.com/gpu", 2),
			want:     "0/1 clusters can run it: 1 lacks example.com/gpu (need 2, free 0)",
		},
		"health": {
			clusters: []*clusterBuilder{
				cluster("a", 9).notReady().says("etcd is slow"), cluster("b", 9).unreachable(), cluster("c", 9).unreachable(),
			},
			request: deployment(2),
			want:    "0/3 clusters can run it: 1 is not ready, 2 are unreachable",
		},
		"taints": {
			clusters: []*clusterBuilder{
				cluster("a", 9).taint("gpu", "true", corev1.TaintEffectNoSchedule),
				cluster("b", 9).taint("gpu", "true", corev1.TaintEffectNoExecute),
			},
			request: deployment(2),
			want:    "0/2 clusters can run it: 2 have the untolerated taint {gpu: true}",
		},
		"a taint that repeats the condition is not told twice": {
			clusters: []*clusterBuilder{
				cluster("a", 9).unreachable().taint(v1alpha1.TaintUnreachable, "", corev1.TaintEffectNoExecute),
			},
			request: deployment(2),
			want:    "0/1 clusters can run it: 1 is unreachable",
		},
		"kinds": {
			clusters: []*clusterBuilder{cluster("a", 9).serving("Pod.v1", "Job.v1.batch"), cluster("b", 9).serving("Pod.v1")},
			request:  deployment(2),
			want:     "0/2 clusters can run it: 2 do not serve Deployment.v1.apps",
		},
		"nodes": {
			clusters: []*clusterBuilder{cluster("a", 9).noNodes(), cluster("b", 9).noNodes()},
			request:  deployment(2),
			want:     "0/2 clusters can run it: 2 have no ready node",
		},
		"several names that have not joined": {
			clusters: []*clusterBuilder{cluster("a", 9)},
			request:  deployment(2).pinned("venus", "mars"),
			want: `0/1 clusters can run it: cluster "mars" has not joined, cluster "venus" has not joined, ` +
				`1 is not pinned`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(snapshot(tc.clusters...), tc.request.Request)
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
	s := snapshot(cluster("a", 9).taint("slow", "", corev1.TaintEffectPreferNoSchedule))
	if got := Place(s, deployment(1).Request); !got.Decision.Equal(shares("a", 1)) {
		t.Error(got.Message())
	}
}

func TestVerdictsExplainEveryCluster(t *testing.T) {
	s := snapshot(
		cluster("east", 4), cluster("north", 8).cordoned().notReady().says("no answer"), cluster("south", 8), cluster("west", 8),
	)
	got := Place(s, deployment(6).pinned("east", "west", "north", "mars").on(shares("north", 1)).Request)
	want := []Verdict{
		{Cluster: "east", Feasible: true, Score: 0, Fits: 4, Share: &Share{Replicas: 2}},
		{Cluster: "mars", Reasons: []Reason{{Code: ReasonNotJoined}}},
		{
			Cluster: "north", Fits: 8, Share: &Share{Replicas: 1},
			Reasons: []Reason{{Code: ReasonNotReady, Detail: "no answer"}, {Code: ReasonCordoned}},
		},
		{Cluster: "south", Fits: 8, Reasons: []Reason{{Code: ReasonNotPinned}}},
		{Cluster: "west", Feasible: true, Score: 25, Fits: 8, Share: &Share{Replicas: 3}},
	}
	if !reflect.DeepEqual(got.Verdicts, want) {
		t.Errorf("\n got: %+v\nwant: %+v", got.Verdicts, want)
	}
	if text := got.Verdicts[2].Reasons[0].String(); text != "is not ready (no answer)" {
		t.Errorf("reason reads %q", text)
	}
	if got.Strategy != ByCapacity {
		t.Errorf("strategy %q", got.Strategy)
	}
}

func TestMessageNamesFewClusters(t *testing.T) {
	var clusters []*clusterBuilder
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"} {
		clusters = append(clusters, cluster(name, 5))
	}
	got := Place(snapshot(clusters...), deployment(1).duplicated().Request).Message()
	want := "placed on a (1), b (1), c (1), d (1), e (1), f (1), g (1), h (1) and 3 more clusters"
	if got != want {
		t.Errorf("\n got: %s\nwant: %s", got, want)
	}
}

// Every code has its own words, for one cluster and for several.
func TestReasonsReadAsProse(t *testing.T) {
	for _, tc := range []struct {
		reason   Reason
		one, two string
	}{
		{Reason{Code: ReasonNotJoined}, "has not joined", "have not joined"},
		{Reason{Code: ReasonNotPinned}, "is not pinned", "are not pinned"},
		{Reason{Code: ReasonNotSelected, Subject: "PlacementPolicy a/b"},
			"is not selected by PlacementPolicy a/b", "are not selected by PlacementPolicy a/b"},
		{Reason{Code: ReasonNoWeight, Subject: "x"}, "has no weight in x", "have no weight in x"},
		{Reason{Code: ReasonEvicted}, "is being emptied", "are being emptied"},
		{
			Reason{Code: ReasonEvicted, Subject: "{spot: yes}"},
			"is left because of the taint {spot: yes}", "are left because of the taint {spot: yes}",
		},
		{Reason{Code: ReasonInvalidPolicy, Subject: "x"}, "is ruled out by x", "are ruled out by x"},
		{Reason{Code: ReasonNotReady}, "is not ready", "are not ready"},
		{Reason{Code: ReasonUnreachable}, "is unreachable", "are unreachable"},
		{Reason{Code: ReasonCordoned}, "is cordoned", "are cordoned"},
		{Reason{Code: ReasonTainted, Subject: "{a: b}"}, "has the untolerated taint {a: b}", "have the untolerated taint {a: b}"},
		{Reason{Code: ReasonNotServed, Subject: "X.v1"}, "does not serve X.v1", "do not serve X.v1"},
		{Reason{Code: ReasonNoNodes}, "has no ready node", "have no ready node"},
		{Reason{Code: ReasonLacks, Subject: "cpu", Need: 250, Free: 100},
			"lacks cpu (need 0.25, free 0.1)", "lack cpu (need 0.25, free 0.1)"},
		{Reason{Code: "Odd"}, "is out: Odd", "are out: Odd"},
	} {
		if got := tc.reason.of(1); got != tc.one {
			t.Errorf("%s: %q, want %q", tc.reason.Code, got, tc.one)
		}
		if got := tc.reason.of(2); got != tc.two {
			t.Errorf("%s: %q, want %q", tc.reason.Code, got, tc.two)
		}
	}
}

func TestReadyIsUnknownUntilACondition(t *testing.T) {
	got := Observe(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Load{})
	if got.Ready != metav1.ConditionUnknown || got.Free != nil {
		t.Errorf("got %+v", got)
	}
}
