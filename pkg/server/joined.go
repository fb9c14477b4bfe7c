package server

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
)

// joinedClusters are the clusters that have joined, once somebody knows them.
type joinedClusters struct {
	// lister is set before the server serves.
	lister listers.ClusterLister
}

func (j *joinedClusters) all() []*v1alpha1.Cluster {
	if j.lister == nil {
		return nil
	}
	all, _ := j.lister.List(labels.Everything()) // listing from a cache cannot fail
	return all
}
