package rules

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

type (
	namespaced = v1alpha1.PlacementPolicy
	wide       = v1alpha1.ClusterPlacementPolicy
	selects    = v1alpha1.WorkloadSelector
)

// policyMeta is the metadata of a policy that is so many days old.
func policyMeta(namespace, name string, days int) metav1.ObjectMeta {
	created := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -days)
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(created)}
}

func inShop(name string, days int, spec v1alpha1.PlacementPolicySpec) namespaced {
	return namespaced{ObjectMeta: policyMeta("shop", name, days), Spec: spec}
}

func everywhere(name string, days int, spec v1alpha1.PlacementPolicySpec) wide {
	return wide{ObjectMeta: policyMeta("", name, days), Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: spec}}
}

func only(selector *metav1.LabelSelector, policy wide) wide {
	policy.Spec.NamespaceSelector = selector
	return policy
}

func priority(p int32) v1alpha1.PlacementPolicySpec { return v1alpha1.PlacementPolicySpec{Priority: p} }

func about(w selects) v1alpha1.PlacementPolicySpec {
	return v1alpha1.PlacementPolicySpec{Workloads: &w}
}

func TestSelectPolicy(t *testing.T) {
	invalid := build.Labelled("tier", "no/t valid")
	for name, tc := range map[string]struct {
		namespaced []namespaced
		wide       []wide
		want       string
		wantErr    string
	}{
		"none": {},
		"one of the namespace wins over one for all, whatever the priorities": {
			namespaced: []namespaced{inShop("mine", 1, priority(0))},
			wide:       []wide{everywhere("default", 9, priority(100))},
			want:       "PlacementPolicy shop/mine",
		},
		"the highest priority wins": {
			wide: []wide{everywhere("a", 9, priority(1)), everywhere("b", 1, priority(2)), everywhere("c", 9, priority(-5))},
			want: "ClusterPlacementPolicy b",
		},
		"of equal priorities the oldest wins": {
			wide: []wide{everywhere("a", 1, priority(1)), everywhere("b", 2, priority(1))},
			want: "ClusterPlacementPolicy b",
		},
		"of equal ages the first name wins": {
			wide: []wide{everywhere("b", 1, priority(1)), everywhere("a", 1, priority(1))},
			want: "ClusterPlacementPolicy a",
		},
		"one of another namespace does not count": {
			namespaced: []namespaced{{ObjectMeta: policyMeta("bank", "theirs", 1)}},
			wide:       []wide{everywhere("default", 9, priority(0))},
			want:       "ClusterPlacementPolicy default",
		},
		"kinds are selected": {
			namespaced: []namespaced{
				inShop("jobs", 1, about(selects{Kinds: []string{"Job", "CronJob"}})),
				inShop("web", 1, about(selects{Kinds: []string{"StatefulSet", "Deployment"}})),
			},
			want: "PlacementPolicy shop/web",
		},
		"labels are selected": {
			namespaced: []namespaced{
				inShop("back", 1, about(selects{LabelSelector: build.Labelled("tier", "back")})),
				inShop("front", 1, about(selects{LabelSelector: build.Labelled("tier", "front")})),
			},
			want: "PlacementPolicy shop/front",
		},
		"namespaces are selected": {
			wide: []wide{
				only(build.Labelled("team", "b"), everywhere("b", 9, priority(1))),
				only(build.Labelled("team", "a"), everywhere("a", 1, priority(0))),
			},
			want: "ClusterPlacementPolicy a",
		},
		"an empty selector selects all": {
			wide: []wide{only(&metav1.LabelSelector{}, everywhere("a", 1, about(selects{LabelSelector: &metav1.LabelSelector{}})))},
			want: "ClusterPlacementPolicy a",
		},
		"a selector that cannot be read is an error that names the policy": {
			wide: []wide{
				everywhere("bad", 1, about(selects{LabelSelector: invalid})), everywhere("good", 1, priority(0)),
			},
			wantErr: "select Deployment shop/web by ClusterPlacementPolicy bad: workloads.labelSelector: ",
		},
		"a namespace selector that cannot be read is one too": {
			wide:    []wide{only(invalid, everywhere("bad", 1, priority(0)))},
			wantErr: "by ClusterPlacementPolicy bad: namespaceSelector: ",
		},
		"a selector that cannot be read does no harm behind the policy that wins": {
			wide: []wide{
				everywhere("bad", 1, about(selects{LabelSelector: invalid})), everywhere("good", 1, priority(1)),
			},
			want: "ClusterPlacementPolicy good",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := build.Deployment(1).Workload
			w.Labels = map[string]string{"tier": "front"}
			w.NamespaceLabels = map[string]string{"team": "a"}
			r := rand.New(rand.NewPCG(1, 1))
			for range 5 {
				r.Shuffle(len(tc.wide), func(i, j int) { tc.wide[i], tc.wide[j] = tc.wide[j], tc.wide[i] })
				got, err := Select(w, readAll(tc.namespaced, tc.wide))
				if tc.wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
						t.Fatalf("error %v, want one with %q", err, tc.wantErr)
					}
					continue
				}
				if err != nil || got.String() != tc.want {
					t.Fatalf("got %q, %v; want %q", got.String(), err, tc.want)
				}
			}
		})
	}
}

// readAll reads policies.
func readAll(namespaced []v1alpha1.PlacementPolicy, wide []v1alpha1.ClusterPlacementPolicy) (out []*Policy) {
	for i := range namespaced {
		out = append(out, PolicyOf(&namespaced[i]))
	}
	for i := range wide {
		out = append(out, WidePolicyOf(&wide[i]))
	}
	return out
}
