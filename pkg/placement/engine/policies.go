package engine

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// mostRead bounds how many policies are remembered as they were read, those that were asked last.
const mostRead = 8192

// reading reads policies, and remembers them: every decision asks all policies of its namespace, and reading a selector takes longer than matching
// it with the labels of hundreds of workloads.
type reading struct {
	namespaced listers.PlacementPolicyLister
	wide       listers.ClusterPlacementPolicyLister
	read       *lru.Cache
}

// read is what was read of an object of the informers' caches. These replace objects, and never change them.
type read struct {
	object any
	policy *rules.Policy
}

func newReading(namespaced listers.PlacementPolicyLister, wide listers.ClusterPlacementPolicyLister) reading {
	return reading{namespaced, wide, lru.New(mostRead)}
}

func (r reading) of(name cache.ObjectName, object any, policy func() *rules.Policy) *rules.Policy {
	if last, has := r.read.Get(name); has && last.(read).object == object {
		return last.(read).policy
	}
	out := policy()
	r.read.Add(name, read{object, out})
	return out
}

// forNamespace reads those that workloads of a namespace may be under, or of all namespaces, in no order.
func (r reading) forNamespace(namespace string) []*rules.Policy {
	namespaced, _ := r.namespaced.PlacementPolicies(namespace).List(labels.Everything()) // listing from a cache cannot fail
	out := r.forAll()
	for _, p := range namespaced {
		out = append(out, r.of(cache.MetaObjectToName(p), p, func() *rules.Policy { return rules.PolicyOf(p) }))
	}
	return out
}

// forAll reads those that are in no namespace.
func (r reading) forAll() (out []*rules.Policy) {
	wide, _ := r.wide.List(labels.Everything())
	for _, p := range wide {
		out = append(out, r.of(cache.MetaObjectToName(p), p, func() *rules.Policy { return rules.WidePolicyOf(p) }))
	}
	return out
}

// policy returns the policy that a workload is under; nil if it is under none.
func (e *Engine) policy(w placement.Workload) (*placement.Policy, error) {
	return rules.Select(w, e.reading.forNamespace(w.Namespace))
}

// Concerned returns which workloads of its namespace a policy has a part in the decision about. The second result says that it may have one in those
// about any others: it keeps them apart from its own.
func Concerned(p *v1alpha1.PlacementPolicy) (concerns func(projection.Kind, projection.Object) bool, others bool) {
	policy := rules.PolicyOf(p)
	return func(kind projection.Kind, o projection.Object) bool {
		return policy.Concerns(&placement.Workload{GVK: kind.GVK, Namespace: o.GetNamespace(), Labels: o.GetLabels()})
	}, len(p.Spec.AntiAffinity) > 0
}
