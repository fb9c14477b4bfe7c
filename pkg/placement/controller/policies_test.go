package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestFollowersTellPoliciesWhatTheyDo(t *testing.T) {
	wide := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 3}}
	own := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	client := manifoldfake.NewClientset(wide, own)
	factory := externalversions.NewSharedInformerFactory(client, 0)
	api := factory.Manifold().V1alpha1()
	busy := false
	f := newFollowers(client, api.ClusterPlacementPolicies().Lister(), api.PlacementPolicies().Lister(), "")
	f.busy = func() bool { return busy }
	_, _ = api.ClusterPlacementPolicies().Informer(), api.PlacementPolicies().Informer()
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())

	named := func(name string) item {
		return item{schema.GroupVersionResource{Resource: "deployments"}, cache.ObjectName{Namespace: "shop", Name: name}}
	}
	byDefault := placement.PolicyRef{Kind: "ClusterPlacementPolicy", Name: "default"}
	placed := func(policy placement.PolicyRef) placement.Result {
		return placement.Result{Policy: policy, Decision: placement.Decision{"east": {Replicas: 1}}}
	}
	unplaced := func(policy placement.PolicyRef) placement.Result {
		return placement.Result{Policy: policy, Unplaced: 1}
	}
	const refusal = "0/0 clusters can run it: no cluster has joined"
	f.follow(named("a"), placed(byDefault))
	f.follow(named("c"), unplaced(byDefault))
	f.follow(named("b"), unplaced(byDefault))
	f.follow(named("d"), unplaced(byDefault))
	f.follow(named("d"), placed(placement.PolicyRef{Kind: "PlacementPolicy", Namespace: "shop", Name: "web"})) // another policy selects it now
	f.follow(named("e"), placed(byDefault))
	f.leave(named("e"))
	f.follow(named("f"), placed(placement.PolicyRef{}))
	f.trouble(named("d"), problemIn(`{"east":{},"west":{"problem":"overrides[0] of PlacementPolicy shop/web: no"},"zone":{"problem":"x"}}`))
	f.trouble(named("a"), "was refused")
	f.trouble(named("a"), problemIn(`{"east":{"replicas":1}}`)) // the cluster holds it now
	f.trouble(named("f"), "follows none")

	for policy, want := range map[policyKey]v1alpha1.PlacementPolicyStatus{
		{"", "default"}: {ObservedGeneration: 3, Workloads: 3, Unplaced: 2, LastError: "deployments shop/b: " + refusal},
		{"shop", "web"}: {
			ObservedGeneration: 1, Workloads: 1, LastError: `deployments shop/d: cluster "west": overrides[0] of PlacementPolicy shop/web: no`,
		},
	} {
		if err := f.write(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.PlacementPolicyStatus
		if policy.namespace == "" {
			p, err := client.ManifoldV1alpha1().ClusterPlacementPolicies().Get(t.Context(), policy.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got = p.Status
		} else {
			p, err := client.ManifoldV1alpha1().PlacementPolicies(policy.namespace).Get(t.Context(), policy.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got = p.Status
		}
		if got != want {
			t.Errorf("%v: status %+v, want %+v", policy, got, want)
		}
	}

	gone, c := item{schema.GroupVersionResource{Group: "example.com", Resource: "widgets"}, cache.NewObjectName("shop", "w")}, &Controller{followers: f}
	result := placed(placement.PolicyRef{Kind: "PlacementPolicy", Namespace: "shop", Name: "web"})
	c.Follow(gone.resource, gone.ObjectName, &result)
	if got := f.status(policyKey{"shop", "web"}).Workloads; got != 2 {
		t.Errorf("%d workloads with one that somebody else decides about, want 2", got)
	}
	c.Follow(gone.resource, gone.ObjectName, nil)
	if got := f.status(policyKey{"shop", "web"}).Workloads; got != 1 {
		t.Errorf("%d workloads without it, want 1", got)
	}

	busy = true
	before := len(client.Actions())
	f.follow(named("b"), placed(byDefault))
	if err := f.write(t.Context(), policyKey{"", "default"}); err != nil {
		t.Fatal(err)
	}
	if after := len(client.Actions()); after != before {
		t.Errorf("%d writes while workloads wait to be decided about", after-before)
	}
	busy = false
	if err := f.write(t.Context(), policyKey{"", "gone"}); err != nil {
		t.Errorf("a policy that is gone: %v", err)
	}
}
