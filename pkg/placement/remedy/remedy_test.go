package remedy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/remedy"
)

func TestRemedyOfALimitOfClaims(t *testing.T) {
	east := build.Cluster("east", 99).Having(corev1.ResourceRequestsStorage, 1<<30)
	east.Limits = placement.Amounts{{Name: corev1.ResourceRequestsStorage, Value: 10 << 30}}
	request := build.Database(3).Claiming(2)
	got := remedy.For(build.Snapshot(east), &request.Request, decide.Place(build.Snapshot(east), request.Request))["east"]
	if want := "raise spec.limits[requests.storage] of cluster east to 11Gi for one more replica"; len(got) != 1 || got[0] != want {
		t.Errorf("remedies %q, want %q", got, want)
	}
}

func TestRemedyForAHandMadeVolume(t *testing.T) {
	request := build.Deployment(1).Carrying(build.Disk("a", "", "1Gi"))
	s := build.Snapshot(build.Cluster("east", 10))
	got := remedy.For(s, &request.Request, decide.Place(s, request.Request))
	want := "let PersistentVolume a go there along with its claim: manifold cluster join east --cluster-kubeconfig FILE --allow-volumes"
	if len(got["east"]) != 1 || got["east"][0] != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestRemedies(t *testing.T) {
	capped := build.Cluster("east", 1)
	capped.Limits, capped.Withheld = placement.Amounts{{Name: corev1.ResourcePods, Value: 38}}, placement.Amounts{{Name: corev1.ResourcePods, Value: 100}}
	capped.Having(corev1.ResourcePods, -1).Having(corev1.ResourceCPU, 9000)
	tight := build.Cluster("east", 1)
	tight.Limits, tight.Withheld = placement.Amounts{{Name: corev1.ResourceCPU, Value: 4000}}, placement.Amounts{{Name: corev1.ResourceCPU, Value: 1000}}
	west := build.Cluster("west", 10)
	selecting := func(expression metav1.LabelSelectorRequirement) *build.RequestBuilder {
		return build.Deployment(2).Under(func(s *v1alpha1.PlacementPolicySpec) {
			s.Clusters = &v1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression}}}
		})
	}
	for name, tc := range map[string]struct {
		clusters []*build.ClusterBuilder
		request  *build.RequestBuilder
		want     []string // for east
	}{
		"nothing has to change where it runs": {clusters: []*build.ClusterBuilder{build.Cluster("east", 9)}, request: build.Deployment(2)},
		"what is missing for one more": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), west}, request: build.Deployment(2).Needing(corev1.ResourceCPU, 2500).Needing(corev1.ResourceMemory, 3<<40),
			want: []string{"1500m more cpu for one more replica", "2Ti more memory for one more replica"},
		},
		"a limit that withholds what there is": {
			clusters: []*build.ClusterBuilder{capped, west}, request: build.Deployment(2),
			want: []string{"raise spec.limits[pods] of cluster east to 40 for one more replica"},
		},
		"a limit that withholds some of it": {
			clusters: []*build.ClusterBuilder{tight, west}, request: build.Deployment(1).Needing(corev1.ResourceCPU, 3000),
			want: []string{"raise spec.limits[cpu] of cluster east to 6 for one more replica, and 1 more cpu"},
		},
		"replicas that wait on a cluster that is full": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 0).Cordoned()}, request: build.Deployment(2).On(build.Shares("east", 1)).PinnedToAll(),
			want: []string{"manifold cluster uncordon east", "1 more cpu for one more replica"},
		},
		"a cordon": {clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Cordoned(), west}, request: build.Deployment(2), want: []string{"manifold cluster uncordon east"}},
		"a taint without a policy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Taint("gpu", "yes", corev1.TaintEffectNoSchedule), west}, request: build.Deployment(2),
			want: []string{"take the taint {gpu: yes} off the cluster, or tolerate it in spec.tolerations of a policy"},
		},
		"a taint under a policy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Taint("gpu", "yes", corev1.TaintEffectNoSchedule), west}, request: build.Deployment(2).KeptTogether(),
			want: []string{"take the taint {gpu: yes} off the cluster, or tolerate it in spec.tolerations of ClusterPlacementPolicy rule"},
		},
		"a drain": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Taint(v1alpha1.TaintDrain, "", corev1.TaintEffectNoExecute), west},
			request:  build.Deployment(2).On(build.Shares("east", 2)).Leaving("east"),
			want:     []string{"manifold cluster uncordon east, which ends its drain"},
		},
		"a removal": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).Leaving("east"),
			want: []string{"none: the cluster is being removed"},
		},
		"silence": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Unreachable(), west}, request: build.Deployment(2),
			want: []string{"have the cluster answer and be ready; kubectl describe cluster east says what is the matter"},
		},
		"a pin": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).Pinned("west"),
			want: []string{"pin it there too: manifold.dev/clusters=east,west"},
		},
		"a cluster that has not joined": {
			clusters: []*build.ClusterBuilder{west}, request: build.Deployment(2).Pinned("west", "east"), want: []string{"manifold cluster join east"},
		},
		"names of a policy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).Selecting("west"),
			want: []string{"add it to spec.clusters.names of ClusterPlacementPolicy rule"},
		},
		"labels of a policy": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Label("region", "us"), west},
			request:  selecting(metav1.LabelSelectorRequirement{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"uk", "eu"}}),
			want:     []string{"label the cluster region=eu (or uk), or change spec.clusters.labelSelector of ClusterPlacementPolicy rule"},
		},
		"labels that a policy rules out": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Label("region", "us"), west},
			request:  selecting(metav1.LabelSelectorRequirement{Key: "region", Operator: metav1.LabelSelectorOpDoesNotExist}),
			want:     []string{"take the label region off the cluster, or change spec.clusters.labelSelector of ClusterPlacementPolicy rule"},
		},
		"no weight": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).Weighing(map[string]int32{"west": 1}),
			want: []string{"give it a weight in spec.division.weights of ClusterPlacementPolicy rule"},
		},
		"no group": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).Group("", "west"),
			want: []string{"add it to one of spec.groups of ClusterPlacementPolicy rule"},
		},
		"a spread over a label that it lacks": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west.In("eu", "a")}, request: build.Deployment(2).DividedBy(v1alpha1.ByEven).SpreadBy("region", 1, v1alpha1.DoNotPlace),
			want: []string{"give the cluster a label region, or change spec.spread of ClusterPlacementPolicy rule"},
		},
		"too many clusters": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2).DividedBy(v1alpha1.ByEven).OnClusters(0, 1),
			want: []string{"raise spec.maxClusters of ClusterPlacementPolicy rule above 1"},
		},
		"a share that would be too small": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 1), west}, request: build.Deployment(6).DividedBy(v1alpha1.ByEven).AtLeast(3),
			want: []string{"make room for more than 1 replicas, or lower spec.division.minReplicas of ClusterPlacementPolicy rule"},
		},
		"a kind": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Serving("Pod.v1"), west}, request: build.Deployment(2),
			want: []string{"have the cluster serve Deployment.v1.apps"},
		},
		"a class": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Offering(), west}, request: build.Deployment(2).Classed("high"),
			want: []string{"create PriorityClass high in the cluster, or name another one"},
		},
		"a class that could come along": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9).Offering().LetsIn(5), west}, request: build.Deployment(2).Classed("high").Bringing(7),
			want: []string{"create PriorityClass high in the cluster, or name another one, or let it come along: " +
				"manifold cluster join east --cluster-kubeconfig FILE --allow-priority-classes=7"},
		},
		"nodes": {clusters: []*build.ClusterBuilder{build.Cluster("east", 9).NoNodes(), west}, request: build.Deployment(2), want: []string{"add a node that is ready"}},
		"nothing speaks against it, but another one comes first": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(2),
			want: []string{"pin it there: manifold.dev/clusters=east; another cluster comes first, where it runs, where more of its namespace is, or with a higher score"},
		},
		"fewer replicas than clusters": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(1).PinnedToAll(), want: []string{"ask for more replicas: each has a cluster"},
		},
		"packed elsewhere": {
			clusters: []*build.ClusterBuilder{build.Cluster("east", 9), west}, request: build.Deployment(3).DividedBy(v1alpha1.ByPacking),
			want: []string{"prefer it in spec.preferences of ClusterPlacementPolicy rule: there is room enough where the score is higher"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := build.Snapshot(tc.clusters...)
			if got := remedy.For(s, &tc.request.Request, decide.Place(s, tc.request.Request))["east"]; !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Whoever adds what a remedy asks for finds that it was enough, and that less would not have been.
func TestRemedyForALackIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		free, need := r.Int64N(3000)-100, 3000+r.Int64N(5000)
		req := build.Deployment(1).Needing(corev1.ResourceCPU, need).Request
		with := func(cpu int64) placement.Snapshot {
			return build.Snapshot(build.Cluster("east", 0).Having(corev1.ResourceCPU, cpu))
		}
		text := remedy.For(with(free), &req, decide.Place(with(free), req))["east"][0]
		asked, _, _ := strings.Cut(text, " ")
		added, err := resource.ParseQuantity(asked)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !decide.Place(with(free+added.MilliValue()), req).Verdicts[0].Feasible || decide.Place(with(free+added.MilliValue()-1), req).Verdicts[0].Feasible {
			t.Fatalf("%q is not what is missing of %d with %d free", text, need, free)
		}
	}
}
