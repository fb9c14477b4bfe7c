// Package terms says on which terms a cluster takes part: whether it is being removed, and what its admin lets come along.
package terms

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Terms are those of one cluster.
type Terms struct {
	// Leaving reports whether the cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func() (leaving bool, manner string)
	// Allows returns what the admin of the cluster lets come along there.
	Allows func() v1alpha1.ClusterAllows
}

// Leaves reports whether the cluster is being removed, in whatever manner.
func (t Terms) Leaves() bool {
	leaving, _ := t.Leaving()
	return leaving
}

// LeftAsItIs reports whether the cluster leaves with all that it has, which is nobody's business of ours from then on.
func (t Terms) LeftAsItIs() bool { return t.leavesBy(v1alpha1.RemoveOrphan) }

// GivenUp reports whether the cluster is removed as one that is gone for good: what is there stays, and nothing above tells of it.
func (t Terms) GivenUp() bool { return t.leavesBy(v1alpha1.RemoveForce) }

func (t Terms) leavesBy(manner string) bool {
	leaving, by := t.Leaving()
	return leaving && by == manner
}
