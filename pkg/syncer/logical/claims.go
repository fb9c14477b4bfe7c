package logical

import (
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ClaimsFor returns the claims that a user has made under the names of those that a workload's templates stand for: its controller uses
// them, if they are there before it makes its own.
func (c *Cluster) ClaimsFor(w identity.Workload) []identity.Key {
	var out []identity.Key
	for _, claim := range c.Following(identity.Claims, w.Key()) {
		if _, uses := w.Kind.ClaimOrdinal(w.Object, claim.GetName()); uses {
			out = append(out, identity.Key{Resource: identity.Claims, Namespace: claim.GetNamespace(), Name: claim.GetName()})
		}
	}
	return out
}

// Claimant returns the workload of that key if it uses the claim by name, or nil.
func (c *Cluster) Claimant(claim, of identity.Key) *identity.Workload {
	kind, ok := projection.ForResource(of.Resource)
	if !ok || !kind.Workload {
		return nil
	}
	above := c.Get(of)
	if above == nil {
		return nil
	}
	if _, uses := kind.ClaimOrdinal(above, claim.Name); !uses {
		return nil
	}
	return &identity.Workload{Kind: kind, Object: above}
}

// HomeOf returns the cluster in which the replica is to run that uses the claim of that name, "" if there is none.
func (c *Cluster) HomeOf(namespace, claim string) string {
	for _, set := range projection.SetsOfClaim(claim) {
		w := c.Claimant(identity.Key{Resource: identity.Claims, Namespace: namespace, Name: claim},
			identity.Key{Resource: identity.StatefulSets, Namespace: namespace, Name: set})
		if w == nil {
			continue
		}
		ordinal, _ := w.Kind.ClaimOrdinal(w.Object, claim)
		for cluster, share := range identity.DecisionOf(w) {
			if identity.OrdinalsOf(*w, share).Contains(ordinal) {
				return cluster
			}
		}
	}
	return ""
}
