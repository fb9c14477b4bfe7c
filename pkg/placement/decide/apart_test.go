package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/remedy"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

func TestOthersKeepApart(t *testing.T) {
	keeper := func(change func(*v1alpha1.PlacementPolicySpec)) v1alpha1.PlacementPolicy {
		var p v1alpha1.PlacementPolicy
		p.Namespace, p.Name = "shop", "keeper"
		p.Spec.Workloads = &v1alpha1.WorkloadSelector{LabelSelector: build.Labelled("app", "db")}
		p.Spec.AntiAffinity = []v1alpha1.WorkloadAffinity{{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: build.Labelled("app", "web")}}}
		change(&p.Spec)
		return p
	}
	as := func(*v1alpha1.PlacementPolicySpec) {}
	weight := int32(9)
	db := placement.Other{
		Kind: "StatefulSet", Group: "apps", Namespace: "shop", Name: "db", Labels: map[string]string{"app": "db"},
		NamespaceLabels: map[string]string{"team": "sales"}, Clusters: []string{"east"},
	}
	pinned, foreign := db, db
	pinned.Pinned = true
	foreign.Namespace, foreign.NamespaceLabels = "bank", map[string]string{"team": "pay"}
	for name, test := range map[string]struct {
		policies []v1alpha1.PlacementPolicy
		wide     []v1alpha1.ClusterPlacementPolicy
		other    placement.Other
		change   func(*build.RequestBuilder)
		want     placement.Decision
	}{
		"what is kept apart from does not come to where its keeper is": {policies: []v1alpha1.PlacementPolicy{keeper(as)}, other: db, want: build.Shares("west", 2)},
		"a policy for all namespaces keeps apart as well": {
			wide:  []v1alpha1.ClusterPlacementPolicy{{Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: keeper(as).Spec}}},
			other: db, want: build.Shares("west", 2),
		},
		"a preference to be apart is one of both": {
			policies: []v1alpha1.PlacementPolicy{keeper(func(s *v1alpha1.PlacementPolicySpec) { s.AntiAffinity[0].Weight = &weight })},
			other:    db, want: build.Shares("west", 2),
		},
		"whom the term is not about goes where it likes": {
			policies: []v1alpha1.PlacementPolicy{keeper(as)}, other: db, want: build.Shares("east", 2),
			change: func(b *build.RequestBuilder) { b.Workload.Labels = map[string]string{"app": "shop"} },
		},
		"a policy that does not select the other keeps nobody apart": {
			policies: []v1alpha1.PlacementPolicy{keeper(func(s *v1alpha1.PlacementPolicySpec) { s.Workloads.LabelSelector = build.Labelled("app", "cache") })},
			other:    db, want: build.Shares("east", 2),
		},
		"a policy that another one wins over keeps nobody apart": {
			policies: []v1alpha1.PlacementPolicy{keeper(as), keeper(func(s *v1alpha1.PlacementPolicySpec) { s.Priority, s.AntiAffinity = 5, nil })},
			other:    db, want: build.Shares("east", 2),
		},
		"affinity is not of both": {
			policies: []v1alpha1.PlacementPolicy{keeper(func(s *v1alpha1.PlacementPolicySpec) { s.Affinity, s.AntiAffinity = s.AntiAffinity, nil })},
			other:    db, want: build.Shares("east", 2),
		},
		"others in other namespaces do not count": {
			wide:  []v1alpha1.ClusterPlacementPolicy{{Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: keeper(as).Spec}}},
			other: foreign, want: build.Shares("east", 2),
		},
		"unless they select the namespace": {
			wide: []v1alpha1.ClusterPlacementPolicy{{Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: keeper(func(s *v1alpha1.PlacementPolicySpec) {
				s.AntiAffinity[0].NamespaceSelector = build.Labelled("team", "sales")
			}).Spec}}},
			other: foreign, want: build.Shares("west", 2),
		},
		"what is pinned there goes there": {
			policies: []v1alpha1.PlacementPolicy{keeper(as)}, other: db, want: build.Shares("east", 2),
			change: func(b *build.RequestBuilder) { b.Pinned("east") },
		},
		"who was pinned there does not mind": {policies: []v1alpha1.PlacementPolicy{keeper(as)}, other: pinned, want: build.Shares("east", 2)},
		"what runs stays": {
			policies: []v1alpha1.PlacementPolicy{keeper(as)}, other: db, want: build.Shares("east", 2),
			change: func(b *build.RequestBuilder) { b.On(build.Shares("east", 2)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := build.Deployment(2)
			b.Workload.Labels, b.Workload.NamespaceLabels = map[string]string{"app": "web"}, map[string]string{"team": "sales"}
			if test.change != nil {
				test.change(b)
			}
			b.Others = []placement.Other{test.other}
			var policies []*rules.Policy
			for i := range test.policies {
				policies = append(policies, rules.PolicyOf(&test.policies[i]))
			}
			for i := range test.wide {
				policies = append(policies, rules.WidePolicyOf(&test.wide[i]))
			}
			kept, all := rules.KeptApart(&b.Workload, policies)
			if all && !kept {
				t.Error("all namespaces matter, although nobody keeps apart from it")
			}
			rules.KeepApart(&b.Workload, b.Others, policies)
			if len(b.Others[0].Apart) > 0 && !kept {
				t.Error("it would not have been asked for")
			}
			got := decide.Place(build.Snapshot(build.Cluster("east", 20), build.Cluster("west", 10)), b.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("decision %v, want %v: %s", got.Decision, test.want, got.Message())
			}
		})
	}
}

func TestAClusterOfAKeeperSaysWhose(t *testing.T) {
	b := build.Deployment(2)
	term := v1alpha1.WorkloadAffinity{}
	for _, name := range []string{"db", "cache"} {
		b.Others = append(b.Others, placement.Other{
			Kind: "StatefulSet", Namespace: "shop", Name: name, Clusters: []string{"east"}, Apart: []v1alpha1.WorkloadAffinity{term},
		})
	}
	s := build.Snapshot(build.Cluster("east", 20))
	result := decide.Place(s, b.Request)
	if got, want := result.Message(), "0/1 clusters can run it: 1 runs StatefulSet shop/cache, whose policy keeps this workload away"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if !result.KeptOff() {
		t.Error("it is not known to wait for others")
	}
	if got, want := remedy.For(s, &b.Request, result)["east"], "move StatefulSet shop/cache away, or change spec.antiAffinity of its policy"; len(got) != 1 || got[0] != want {
		t.Errorf("remedies %q, want %q", got, want)
	}
}
