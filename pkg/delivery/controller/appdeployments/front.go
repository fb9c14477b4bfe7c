package appdeployments

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// front is the Service in front of all revisions, which leads to their pods as they are: where nothing else shares out requests, the number of pods does. It
// is made of the last revision that has one, unless somebody has it already.
func (r *run) front() *unstructured.Unstructured {
	for _, revision := range slices.Backward(r.spec.Revisions) {
		front := r.fronts[revision.Variant]
		if front == nil {
			continue
		}
		present, _ := r.store.Get(r.key.Namespace, wanted.Key{Kind: "Service", Name: front.GetName()})
		if present != nil && !objects.Owned(present, objects.Owner{Name: r.memory.id, UID: r.object.UID}) {
			return nil
		}
		return oam.Fronted(front)
	}
	return nil
}
