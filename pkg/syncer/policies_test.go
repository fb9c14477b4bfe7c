package syncer

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/engine/policies"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// policyFor is a policy of the namespace "shop" for workloads with a label app, or for all.
func policyFor(app string, change ...func(*v1alpha1.PlacementPolicy)) *v1alpha1.PlacementPolicy {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: objectMeta("rule")}
	if app != "" {
		p.Spec.Workloads = &v1alpha1.WorkloadSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// later is an edit of a policy that its generation counts.
func later(edit func(*v1alpha1.PlacementPolicySpec)) func(*v1alpha1.PlacementPolicy) {
	return func(p *v1alpha1.PlacementPolicy) {
		p.Generation++
		edit(&p.Spec)
	}
}

// widePolicy is one for all workloads of the namespaces with a label team.
func widePolicy(team string) *v1alpha1.ClusterPlacementPolicy {
	p := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rule", Generation: 1}}
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	return p
}

// labelled is a Deployment of the logical cluster with the label app=<name>, placed in east.
func labelled(name string) *appsv1.Deployment {
	return deployment(name, toEast, func(d *appsv1.Deployment) { d.Labels = map[string]string{"app": name} })
}

// selectByPlacement has policies select as placement does.
func selectByPlacement(u *Upstream) {
	u.router.Selects = func(changed ...metav1.Object) func(projection.Kind, projection.Object) bool {
		return policies.SelectedBy(func(name string) (map[string]string, bool) {
			found, err := u.Namespaces.Get(name)
			if err != nil {
				return nil, false
			}
			return found.Labels, true
		}, changed...)
	}
}

func TestAPolicyWakesWhatItSelectsAndSelected(t *testing.T) {
	priority := later(func(s *v1alpha1.PlacementPolicySpec) { s.Priority++ })
	both := []string{"deployments shop/api", "deployments shop/web"}
	elsewhere := labelled("far")
	elsewhere.Namespace = "bank"
	teams := func(name, team string) projection.Object {
		ns := namespace(name)
		ns.Labels = map[string]string{"team": team}
		return ns
	}
	for name, test := range map[string]struct {
		before, after any
		want          []string
	}{
		"one that is new":                    {after: policyFor("web"), want: []string{"deployments shop/web"}},
		"one that is new and for all":        {after: policyFor(""), want: both},
		"one that is new and selects nobody": {after: policyFor("db")},
		"one that cannot be read": {
			after: policyFor("", later(func(s *v1alpha1.PlacementPolicySpec) {
				s.Workloads = &v1alpha1.WorkloadSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "no/t valid"}}}
			})), want: both,
		},
		"one for another kind": {after: policyFor("", later(func(s *v1alpha1.PlacementPolicySpec) {
			s.Workloads = &v1alpha1.WorkloadSelector{Kinds: []string{"Job"}}
		}))},
		"one that selects others than before": {
			before: policyFor("web"), after: policyFor("api", later(func(*v1alpha1.PlacementPolicySpec) {})), want: both,
		},
		"one that no longer selects anybody": {
			before: policyFor("web"), after: policyFor("db", later(func(*v1alpha1.PlacementPolicySpec) {})), want: []string{"deployments shop/web"},
		},
		"one of another priority": {before: policyFor("web"), after: policyFor("web", priority), want: []string{"deployments shop/web"}},
		"one that says something else of moves": {
			before: policyFor("web"), after: policyFor("web", later(func(s *v1alpha1.PlacementPolicySpec) { s.Move = &v1alpha1.Move{} })), want: []string{"deployments shop/web"},
		},
		"one that drains for another time": {
			before: policyFor("web"), after: policyFor("web", func(p *v1alpha1.PlacementPolicy) {
				p.Annotations = map[string]string{v1alpha1.AnnotationDrainSeconds: "5"}
			}), want: []string{"deployments shop/web"},
		},
		"one that changes nothing which is projected": {
			before: policyFor("web"), after: policyFor("web", later(func(s *v1alpha1.PlacementPolicySpec) { s.Clusters = &v1alpha1.ClusterSelector{} })),
		},
		"one that is deleted":                         {before: policyFor("web"), want: []string{"deployments shop/web"}},
		"one whose deletion the watch missed":         {before: cache.DeletedFinalStateUnknown{Key: "shop/rule", Obj: policyFor("web")}, want: []string{"deployments shop/web"}},
		"one for the namespaces of a team":            {after: widePolicy("a"), want: both},
		"one for the namespaces of another team":      {before: widePolicy("b"), want: []string{"deployments bank/far"}},
		"one for namespaces that nobody has":          {after: widePolicy("c")},
		"one for all workloads of all namespaces":     {after: &v1alpha1.ClusterPlacementPolicy{}, want: append([]string{"deployments bank/far"}, both...)},
		"one for namespaces that cannot be told from": {after: widePolicy("no/t valid"), want: append([]string{"deployments bank/far"}, both...)},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, teams("shop", "a"), teams("bank", "b"), labelled("web"), labelled("api"), elsewhere)
			selectByPlacement(u)
			east := attach(t, u, "east")
			handler := u.router.Policies()
			switch {
			case test.before == nil:
				handler.OnAdd(test.after, false)
			case test.after == nil:
				handler.OnDelete(test.before)
			default:
				handler.OnUpdate(test.before, test.after)
			}
			if got := east.enqueued(); !slices.Equal(got, test.want) {
				t.Errorf("looked at are %v, want %v", got, test.want)
			}
		})
	}
}

// A thousand applications with a policy each are looked at a thousand times when all policies come, and not a million times.
func TestPoliciesOfManyApplicationsWakeTheirOwn(t *testing.T) {
	const applications = 200
	objects := []projection.Object{namespace("shop")}
	for i := range applications {
		objects = append(objects, labelled(fmt.Sprintf("app-%d", i)))
	}
	u := newUpstream(t, objects...)
	selectByPlacement(u)
	east := attach(t, u, "east")
	woken := 0
	for i := range applications {
		u.router.Policies().OnAdd(policyFor(fmt.Sprintf("app-%d", i)), false)
		woken += len(east.enqueued())
	}
	if woken != applications {
		t.Errorf("%d were looked at, want %d", woken, applications)
	}
}

func TestAWorkloadWhoseNamespaceIsNotKnownYetIsLookedAtForEveryPolicy(t *testing.T) {
	u := newUpstream(t, labelled("web"))
	selectByPlacement(u)
	east := attach(t, u, "east")
	u.router.Policies().OnAdd(widePolicy("a"), false)
	if got := east.enqueued(); !slices.Equal(got, []string{"deployments shop/web"}) {
		t.Errorf("looked at are %v", got)
	}
}
