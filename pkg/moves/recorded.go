package moves

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove. Nil is one that is gone: nobody waits
// for what it had.
func Leaving(c *v1alpha1.Cluster) (leaving bool, manner string) {
	switch {
	case c == nil:
		return true, v1alpha1.RemoveForce
	case c.DeletionTimestamp == nil:
		return false, ""
	}
	return true, c.Annotations[v1alpha1.AnnotationRemove]
}

// Silent reports whether a cluster cannot be told anything at the moment. Nil is one that is gone.
func Silent(c *v1alpha1.Cluster) bool {
	return c == nil || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ClusterReady)
}

// Recorded returns the fleet of a workload as far as objects of the logical cluster tell of it, for those who have no syncers to ask. Its
// members are the clusters that have, or are leaving, a share. Of what only syncers know, such as what a cluster was told, it says nothing.
func (f *Fleets) Recorded(w identity.Workload) Fleet {
	g := f.begin(w)
	g.finish()
	for cluster, last := range g.record.Reported() {
		m := g.fleet.Members[cluster]
		m.Failed, m.Silent = last.Problem != "", m.Silent || last.Stale
		g.fleet.Members[cluster] = m
	}
	return g.fleet
}

// Rests reports whether nothing is on its way by what is recorded: every cluster of the decision runs its share and can go on with it, and no
// other one has anything left. A cluster that is silent for the moment goes on as far as anybody knows.
func (f Fleet) Rests() bool {
	for cluster, m := range f.Members {
		share, decided := f.Decision[cluster]
		if !decided || m.Leaving || m.Failed || !f.runs(share, m.Recorded) {
			return false
		}
	}
	return true
}

// runs reports whether a cluster runs its share, where the share says how many replicas run: nodes say that of a DaemonSet, and pods of Jobs
// end.
func (f Fleet) runs(share placement.Share, recorded *placement.Share) bool {
	switch {
	case !f.Ordinals && f.Division != placement.Divisible:
		return true
	case recorded == nil:
		return share.Replicas == 0
	case f.Ordinals && share.Replicas > 0:
		return recorded.Ordinals(0) == f.ordinals(share) // the status counts ordinals as they are
	}
	return recorded.Replicas == share.Replicas
}
