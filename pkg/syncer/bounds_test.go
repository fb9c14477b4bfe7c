package syncer

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

func quota(name, pods string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: objectMeta(name), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
	}}
}

func limitRange(name string) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: objectMeta(name)}
}

func disruptionBudget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: objectMeta(name), Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
}

func TestWhatIsDividedKnowsWhereItsWorkloadsRun(t *testing.T) {
	both, elsewhere := deployment("web", `{"east":{"replicas":2},"west":{"replicas":1}}`), deployment("api", `{"west":{"replicas":4}}`)
	u := newUpstream(t, both, elsewhere, deployment("waiting", ""), disruptionBudget("web"), quota("all", "9"), limitRange("b"), limitRange("a"))
	attach(t, u, "east")
	for name, test := range map[string]struct {
		of   projection.Object
		want []int32 // replicas in west
	}{
		"a budget that of the pods that it selects":   {disruptionBudget("web"), []int32{1}},
		"a quota that of everything in its namespace": {quota("all", "9"), []int32{1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := projection.KindOf(test.of)
			part, wanted := u.Demand.Part(kind, test.of, "east")
			var got []int32
			for _, w := range part.Workloads {
				got = append(got, w.Decision["west"].Replicas)
			}
			slices.Sort(got)
			if !wanted || !slices.Equal(got, test.want) {
				t.Errorf("wanted %t with %v in west, want %v", wanted, got, test.want)
			}
			if len(part.LimitRanges) != 2 || part.LimitRanges[0].Name != "a" {
				t.Errorf("LimitRanges %v, want both, in order", part.LimitRanges)
			}
		})
	}
}

func TestWhatIsDividedIsLookedAtInAllItsClusters(t *testing.T) {
	web := deployment("web", toEast)
	for name, test := range map[string]struct {
		below         []projection.Object // in west
		before, after projection.Object
		west          []string
	}{
		"when a workload of another cluster changes": {
			below: []projection.Object{quota("all", "9"), disruptionBudget("web"), limitRange("some")}, after: web,
			west: []string{"poddisruptionbudgets shop/web", "resourcequotas shop/all"},
		},
		"but not where none of it is": {after: web},
		"when the namespace completes otherwise what pods ask for": {
			below: []projection.Object{quota("all", "9")}, before: limitRange("some"), after: limitRange("some"),
			west: []string{"resourcequotas shop/all"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, web, quota("all", "9"), disruptionBudget("web"), limitRange("some"))
			attach(t, u, "east")
			west := attach(t, u, "west", test.below...)
			kind, _ := projection.KindOf(test.after)
			u.router.Route(kind, test.before, test.after)
			if got := west.enqueued(); !slices.Equal(got, test.west) {
				t.Errorf("west looks at %v, want %v", got, test.west)
			}
		})
	}
}

func TestPodsWaitForWhatBoundsThem(t *testing.T) {
	web := deployment("web", toEast)
	for name, test := range map[string]struct {
		bound projection.Object
		below func(desired projection.Object) projection.Object // what the cluster has of it
		taken bool                                              // the name there is somebody else's
		want  bool
	}{
		"nothing bounds them": {want: true},
		"a LimitRange that is missing": {
			bound: limitRange("some"), below: func(projection.Object) projection.Object { return nil },
		},
		"a LimitRange that is there": {
			bound: limitRange("some"), below: func(desired projection.Object) projection.Object { return desired }, want: true,
		},
		"a LimitRange that cannot be there": {
			bound: limitRange("some"), below: func(projection.Object) projection.Object { return nil }, taken: true, want: true,
		},
		"a quota that nobody has counted": {
			bound: quota("all", "2"), below: func(desired projection.Object) projection.Object { return desired },
		},
		"a quota that is in force": {
			bound: quota("all", "2"), want: true,
			below: func(desired projection.Object) projection.Object {
				q := desired.(*corev1.ResourceQuota)
				q.Status.Hard = q.Spec.Hard
				return q
			},
		},
		"a quota that is about to change": {
			bound: quota("all", "2"),
			below: func(desired projection.Object) projection.Object {
				desired.GetAnnotations()["manifold.dev/projection"] = "earlier"
				q := desired.(*corev1.ResourceQuota)
				q.Status.Hard = q.Spec.Hard
				return q
			},
		},
		"a NetworkPolicy of other pods": {
			bound: networkPolicy("other", map[string]string{"app": "other"}), want: true,
			below: func(projection.Object) projection.Object { return nil },
		},
		"a NetworkPolicy of these pods": {
			bound: networkPolicy("web", map[string]string{"app": "web"}), below: func(projection.Object) projection.Object { return nil },
		},
		"a budget bounds no pods that are made": {
			bound: disruptionBudget("web"), want: true, below: func(projection.Object) projection.Object { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			above := []projection.Object{web}
			if test.bound != nil {
				above = append(above, test.bound)
			}
			u := newUpstream(t, above...)
			s := attach(t, u, "east")
			if test.bound != nil {
				kind, _ := projection.KindOf(test.bound)
				part, _ := u.Demand.Part(kind, test.bound, "east")
				desired, err := kind.Project(test.bound, part, s.target)
				if err != nil {
					t.Fatal(err)
				}
				if live := test.below(desired); live != nil {
					if err := s.below.Stores[kind.Resource].Add(live); err != nil {
						t.Fatal(err)
					}
				}
				if test.taken {
					s.states.Set(identity.KeyOf(kind, test.bound), states.State{Problem: "taken"})
				}
			}
			if got := s.bounded(identity.Workload{Kind: deployments, Object: web}); got != test.want {
				t.Errorf("bounded: %t, want %t", got, test.want)
			}
		})
	}
}
