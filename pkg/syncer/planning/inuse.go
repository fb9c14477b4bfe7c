package planning

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What a workload above needs is what its template names now, and what selects its labels. Pods below may be of an earlier template, in the
// middle of a rollout or for as long as one is stuck, and so may those that are made in their place. They start again only if what they name
// is still there, and are reached and fenced by what selects them.
//
// Of which template pods are is read from their mirrors, and from the ReplicaSets above. What pods below name is their cluster's word, which
// would be enough for it to be sent any Secret.

// usedByPods reports whether pods of ours in the cluster need an object, or such as a ReplicaSet of ours is about to make.
func (c *Planner) usedByPods(kind projection.Kind, above projection.Object) bool {
	pods, _ := projection.ForResource(identity.Pods)
	for _, pod := range c.Demand.ShownIn(above.GetNamespace(), c.Name) {
		if !mirror.Ended(pod) && uses(identity.Workload{Kind: pods, Object: pod}, kind, above) {
			return true
		}
	}
	for _, rs := range c.Below.ReplicaSetsIn(above.GetNamespace()) {
		if ptr.Deref(rs.Spec.Replicas, 0) == 0 {
			continue
		}
		if shown := c.setAbove(rs); shown.Object != nil && uses(shown, kind, above) {
			return true
		}
	}
	return false
}

// setAbove returns the ReplicaSet above that shows one of a Deployment which runs here, or nothing.
func (c *Planner) setAbove(rs *appsv1.ReplicaSet) identity.Workload {
	projected := c.Below.DeploymentOf(rs)
	if projected == nil {
		return identity.Workload{}
	}
	own := c.Owners.Projected(identity.Deployments, projected, rs)
	if own == nil || !c.Has(own.Above) {
		return identity.Workload{}
	}
	above, err := c.Demand.ReplicaSets.ReplicaSets(rs.Namespace).Get(c.Owners.ShownAs(rs, projected.Name))
	if err != nil || !metav1.IsControlledBy(above, own.Above) {
		return identity.Workload{}
	}
	sets, _ := projection.ForResource(identity.ReplicaSets)
	return identity.Workload{Kind: sets, Object: above}
}

// uses reports whether pods name an object or are selected by it.
func uses(w identity.Workload, kind projection.Kind, obj projection.Object) bool {
	key := identity.KeyOf(kind, obj)
	return kind.SelectsPods() && kind.Selects(obj, w.Kind, w.Object) ||
		slices.ContainsFunc(w.Kind.References(w.Object), func(ref projection.Reference) bool { return identity.KeyOfReference(ref) == key })
}
