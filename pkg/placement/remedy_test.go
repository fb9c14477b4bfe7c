package placement

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestRemedies(t *testing.T) {
	capped := cluster("east", 1)
	capped.Limits, capped.Withheld = Amounts{{corev1.ResourcePods, 38}}, Amounts{{corev1.ResourcePods, 100}}
	capped.free(corev1.ResourcePods, -1).free(corev1.ResourceCPU, 9000)
	tight := cluster("east", 1)
	tight.Limits, tight.Withheld = Amounts{{corev1.ResourceCPU, 4000}}, Amounts{{corev1.ResourceCPU, 1000}}
	west := cluster("west", 10)
	selecting := func(expression metav1.LabelSelectorRequirement) *requestBuilder {
		return deployment(2).under(func(s *v1alpha1.PlacementPolicySpec) {
			s.Clusters = &v1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression}}}
		})
	}
	for name, tc := range map[string]struct {
		clusters []*clusterBuilder
		request  *requestBuilder
		want     []string // for east
	}{
		"nothing has to change where it runs": {clusters: []*clusterBuilder{cluster("east", 9)}, request: deployment(2)},
		"what is missing for one more": {
			clusters: []*clusterBuilder{cluster("east", 1), west}, request: deployment(2).needing(corev1.ResourceCPU, 2500).needing(corev1.ResourceMemory, 3<<40),
			want: []string{"1500m more cpu for one more replica", "2Ti more memory for one more replica"},
		},
		"a limit that withholds what there is": {
			clusters: []*clusterBuilder{capped, west}, request: deployment(2),
			want: []string{"raise spec.limits[pods] of cluster east to 40 for one more replica"},
		},
		"a limit that withholds some of it": {
			clusters: []*clusterBuilder{tight, west}, request: deployment(1).needing(corev1.ResourceCPU, 3000),
			want: []string{"raise spec.limits[cpu] of cluster east to 6 for one more replica, and 1 more cpu"},
		},
		"replicas that wait on a cluster that is full": {
			clusters: []*clusterBuilder{cluster("east", 0).cordoned()}, request: deployment(2).on(shares("east", 1)).pinnedToAll(),
			want: []string{"manifold cluster uncordon east", "1 more cpu for one more replica"},
		},
		"a cordon": {clusters: []*clusterBuilder{cluster("east", 9).cordoned(), west}, request: deployment(2), want: []string{"manifold cluster uncordon east"}},
		"a taint without a policy": {
			clusters: []*clusterBuilder{cluster("east", 9).taint("gpu", "yes", corev1.TaintEffectNoSchedule), west}, request: deployment(2),
			want: []string{"take the taint {gpu: yes} off the cluster, or tolerate it in spec.tolerations of a policy"},
		},
		"a taint under a policy": {
			clusters: []*clusterBuilder{cluster("east", 9).taint("gpu", "yes", corev1.TaintEffectNoSchedule), west}, request: deployment(2).keptTogether(),
			want: []string{"take the taint {gpu: yes} off the cluster, or tolerate it in spec.tolerations of ClusterPlacementPolicy rule"},
		},
		"a drain": {
			clusters: []*clusterBuilder{cluster("east", 9).taint(v1alpha1.TaintDrain, "", corev1.TaintEffectNoExecute), west},
			request:  deployment(2).on(shares("east", 2)).leaving("east"),
			want:     []string{"manifold cluster uncordon east, which ends its drain"},
		},
		"a removal": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).leaving("east"),
			want: []string{"none: the cluster is being removed"},
		},
		"silence": {
			clusters: []*clusterBuilder{cluster("east", 9).unreachable(), west}, request: deployment(2),
			want: []string{"have the cluster answer and be ready; kubectl describe cluster east says what is the matter"},
		},
		"a pin": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).pinned("west"),
			want: []string{"pin it there too: manifold.dev/clusters=east,west"},
		},
		"a cluster that has not joined": {
			clusters: []*clusterBuilder{west}, request: deployment(2).pinned("west", "east"), want: []string{"manifold cluster join east"},
		},
		"names of a policy": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).selecting("west"),
			want: []string{"add it to spec.clusters.names of ClusterPlacementPolicy rule"},
		},
		"labels of a policy": {
			clusters: []*clusterBuilder{cluster("east", 9).label("region", "us"), west},
			request:  selecting(metav1.LabelSelectorRequirement{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"uk", "eu"}}),
			want:     []string{"label the cluster region=eu (or uk), or change spec.clusters.labelSelector of ClusterPlacementPolicy rule"},
		},
		"labels that a policy rules out": {
			clusters: []*clusterBuilder{cluster("east", 9).label("region", "us"), west},
			request:  selecting(metav1.LabelSelectorRequirement{Key: "region", Operator: metav1.LabelSelectorOpDoesNotExist}),
			want:     []string{"take the label region off the cluster, or change spec.clusters.labelSelector of ClusterPlacementPolicy rule"},
		},
		"no weight": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).weighing(map[string]int32{"west": 1}),
			want: []string{"give it a weight in spec.division.weights of ClusterPlacementPolicy rule"},
		},
		"no group": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).group("", "west"),
			want: []string{"add it to one of spec.groups of ClusterPlacementPolicy rule"},
		},
		"a spread over a label that it lacks": {
			clusters: []*clusterBuilder{cluster("east", 9), west.in("eu", "a")}, request: deployment(2).dividedBy(v1alpha1.ByEven).spreadBy("region", 1, v1alpha1.DoNotPlace),
			want: []string{"give the cluster a label region, or change spec.spread of ClusterPlacementPolicy rule"},
		},
		"too many clusters": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2).dividedBy(v1alpha1.ByEven).onClusters(0, 1),
			want: []string{"raise spec.maxClusters of ClusterPlacementPolicy rule above 1"},
		},
		"a share that would be too small": {
			clusters: []*clusterBuilder{cluster("east", 1), west}, request: deployment(6).dividedBy(v1alpha1.ByEven).atLeast(3),
			want: []string{"make room for more than 1 replicas, or lower spec.division.minReplicas of ClusterPlacementPolicy rule"},
		},
		"a kind": {
			clusters: []*clusterBuilder{cluster("east", 9).serving("Pod.v1"), west}, request: deployment(2),
			want: []string{"have the cluster serve Deployment.v1.apps"},
		},
		"a class": {
			clusters: []*clusterBuilder{cluster("east", 9).offering(), west}, request: deployment(2).classed("high"),
			want: []string{"create PriorityClass high in the cluster, or name another one"},
		},
		"a class that could come along": {
			clusters: []*clusterBuilder{cluster("east", 9).offering().letsIn(5), west}, request: deployment(2).classed("high").bringing(7),
			want: []string{"create PriorityClass high in the cluster, or name another one, or let it come along: " +
				"manifold cluster join east --cluster-kubeconfig FILE --allow-priority-classes=7"},
		},
		"nodes": {clusters: []*clusterBuilder{cluster("east", 9).noNodes(), west}, request: deployment(2), want: []string{"add a node that is ready"}},
		"nothing speaks against it, but another one comes first": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(2),
			want: []string{"pin it there: manifold.dev/clusters=east; another cluster comes first, where it runs, where more of its namespace is, or with a higher score"},
		},
		"fewer replicas than clusters": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(1).pinnedToAll(), want: []string{"ask for more replicas: each has a cluster"},
		},
		"packed elsewhere": {
			clusters: []*clusterBuilder{cluster("east", 9), west}, request: deployment(3).dividedBy(v1alpha1.ByPacking),
			want: []string{"prefer it in spec.preferences of ClusterPlacementPolicy rule: there is room enough where the score is higher"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(tc.clusters...)
			if got := Remedies(s, &tc.request.Request, Place(s, tc.request.Request))["east"]; !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEveryClusterThatGetsNothingHasARemedy(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for i := range 10000 {
		clusters, req := randomChoice(r)
		if i%2 == 0 {
			clusters, req = randomPlacement(r)
		}
		s := NewSnapshot(clusters)
		got := Place(s, req)
		found := Remedies(s, &req, got)
		for _, v := range got.Verdicts {
			if v.Share == nil && len(found[v.Cluster]) == 0 && req.Workload.Replicas > 0 {
				t.Fatalf("no remedy for %s with %v", v.Cluster, v.Reasons)
			}
		}
	}
}

// Whoever adds what a remedy asks for finds that it was enough, and that less would not have been.
func TestRemedyForALackIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		free, need := r.Int64N(3000)-100, 3000+r.Int64N(5000)
		req := deployment(1).needing(corev1.ResourceCPU, need).Request
		with := func(cpu int64) Snapshot { return snapshot(cluster("east", 0).free(corev1.ResourceCPU, cpu)) }
		text := Remedies(with(free), &req, Place(with(free), req))["east"][0]
		asked, _, _ := strings.Cut(text, " ")
		added, err := resource.ParseQuantity(asked)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !Place(with(free+added.MilliValue()), req).Verdicts[0].Feasible || Place(with(free+added.MilliValue()-1), req).Verdicts[0].Feasible {
			t.Fatalf("%q is not what is missing of %d with %d free", text, need, free)
		}
	}
}
