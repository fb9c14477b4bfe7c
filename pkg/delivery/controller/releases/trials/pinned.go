package trials

import (
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// pins are the clusters that each object which is pinned, such as a workload, goes to once all places have the revision. Where something may run is for policies of the logical cluster to
// refuse as well, and what a target makes by itself shows its own clusters alone.
func (t Trial) pins(places []delivery.Place) (map[wanted.Key]string, error) {
	if !t.Application.Pinned || len(places) < 2 {
		return nil, nil
	}
	parts := map[string]delivery.Part{}
	for _, place := range places {
		parts[place.Cluster] = delivery.Part{Revision: t.Release.Revision, Target: place.Target}
	}
	made, err := t.standsFor(delivery.Set{delivery.Primary: {Clusters: parts}})
	if err != nil {
		return nil, err
	}
	out := map[wanted.Key]string{}
	for _, object := range made.Objects {
		if object.Pinned {
			out[object.Key] = object.Manifest.GetAnnotations()[manifold.AnnotationClusters]
		}
	}
	return out, nil
}

// pinned is an object of the primary that is pinned as it is in all of these clusters, and any other object as it is.
func pinned(object wanted.Object, pins map[wanted.Key]string) wanted.Object {
	pin, has := pins[object.Key]
	if !has || !object.Pinned || object.Variant != delivery.Primary {
		return object
	}
	object.Manifest = object.Manifest.DeepCopy()
	annotations := object.Manifest.GetAnnotations()
	annotations[manifold.AnnotationClusters] = pin
	object.Manifest.SetAnnotations(annotations)
	return object
}
