package logical

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// Volume returns a PersistentVolume of the logical cluster, or nil.
func (c *Cluster) Volume(name string) *corev1.PersistentVolume {
	return caches.Named[*corev1.PersistentVolume](c.Volumes, name)
}

// VolumeNames returns the names of all PersistentVolumes.
func (c *Cluster) VolumeNames() []string { return c.Volumes.ListKeys() }

// VolumesOf returns the PersistentVolumes that are for a claim of that name, or were.
func (c *Cluster) VolumesOf(claim cache.ObjectName) []*corev1.PersistentVolume {
	return caches.Indexed[*corev1.PersistentVolume](c.Volumes, byClaim, claim.String())
}

// ClaimOf returns the claim that a volume of the logical cluster is bound to above, nil if it is bound to none or that is gone.
func (c *Cluster) ClaimOf(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return nil
	}
	claim, _ := c.Get(identity.Key{Resource: identity.Claims, Namespace: ref.Namespace, Name: ref.Name}).(*corev1.PersistentVolumeClaim)
	if claim == nil || claim.UID != ref.UID {
		return nil
	}
	return claim
}

func indexClaim(obj any) ([]string, error) {
	if volume, ok := obj.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
		return []string{volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name}, nil
	}
	return nil, nil
}
