package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// addHandMade adds the volumes of the logical cluster that have to come along with the claims of a workload. Of those that a StatefulSet has
// made, what its template says counts, not what a cluster shows.
func (e *Engine) addHandMade(w *placement.Workload, joined []*v1alpha1.Cluster) {
	isClaim := w.GVK == corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	if !isClaim && len(w.VolumeClaims) == 0 && len(w.Claims) == 0 {
		return
	}
	volumes, _ := e.volumes.List(labels.Everything()) // listing from a cache cannot fail
	if len(volumes) == 0 {
		return
	}
	shelf := handmade.Shelf{Volumes: volumes, Clusters: joined}
	names := w.VolumeClaims
	if isClaim {
		names = []string{w.Name}
	}
	for _, name := range names {
		claim, err := e.claims.PersistentVolumeClaims(w.Namespace).Get(name)
		if err != nil || claim.Annotations[v1alpha1.AnnotationCluster] != "" {
			continue
		}
		if volume := e.handMadeFor(w, claim, shelf); volume != nil {
			w.HandMade = append(w.HandMade, volume)
			if isClaim {
				w.StorageClass = "" // it needs nothing that makes one
			}
		}
	}
	e.addHandMadeOfSet(w, shelf)
}

// handMadeFor returns the volume that goes along with a claim wherever the workload goes next, nil if there is none. One that it has got already comes
// along only if the workload may leave it.
func (e *Engine) handMadeFor(w *placement.Workload, claim *corev1.PersistentVolumeClaim, shelf handmade.Shelf) *corev1.PersistentVolume {
	switch {
	case claim.Status.Phase == corev1.ClaimBound && w.VolumesIn != nil:
		return nil
	case claim.Status.Phase == corev1.ClaimBound:
		return shelf.Had(claim)
	case e.closedTo(claim, shelf.Clusters):
		return nil
	}
	volume, _ := shelf.VolumeFor(claim)
	return volume
}

// addHandMadeOfSet adds those of the first replica of a StatefulSet, as the others are alike.
func (e *Engine) addHandMadeOfSet(w *placement.Workload, shelf handmade.Shelf) {
	for i := range w.Claims {
		template := &w.Claims[i]
		first := projection.ClaimName(template.Name, w.Name, w.First)
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: first, Annotations: template.Annotations}, Spec: template.Spec,
		}
		switch made, err := e.claims.PersistentVolumeClaims(w.Namespace).Get(first); {
		case err != nil: // it is to be made
		case !bound(made):
			claim.UID = made.UID
		case !w.Recreates:
			continue // it stays with its volume, wherever that is from
		}
		if volume, _ := shelf.VolumeFor(claim); volume != nil {
			w.HandMade = append(w.HandMade, volume)
		}
	}
}

// closedTo reports whether a claim is already where no such volume goes, and so waits for one of its cluster.
func (e *Engine) closedTo(claim *corev1.PersistentVolumeClaim, joined []*v1alpha1.Cluster) bool {
	return handmade.ClosedTo(clustersOf(claim), joined)
}
