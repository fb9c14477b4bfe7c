package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
)

const (
	// reasonVolumeStays is that of the event on a claim whose volume was made by hand in the logical cluster, and does not go where the claim is.
	reasonVolumeStays = "VolumeStaysAbove"
	// reasonVolumeTaken is that of the event on a claim that names the volume of another one.
	reasonVolumeTaken = "VolumeTaken"
)

// tellVolume says why a claim does not get the PersistentVolume of the logical cluster that it is for.
func (c *claims) tellVolume(claim *corev1.PersistentVolumeClaim) {
	if claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound || claim.Annotations[v1alpha1.AnnotationCluster] != "" {
		return
	}
	reason, text := c.withoutVolume(claim)
	c.mu.Lock()
	known := c.stays[claim.UID] == text
	if c.stays[claim.UID] = text; text == "" {
		delete(c.stays, claim.UID)
	}
	c.mu.Unlock()
	if !known && text != "" {
		c.Recorder.Event(claim, corev1.EventTypeWarning, reason, text)
	}
}

// withoutVolume is why a claim does not get its volume, "" if it does, or if there is none for it.
func (c *claims) withoutVolume(claim *corev1.PersistentVolumeClaim) (reason, text string) {
	volumes, _ := c.volumes.List(labels.Everything()) // listing from a cache cannot fail
	clusters, _ := c.clusters.List(labels.Everything())
	shelf := handmade.Shelf{Volumes: volumes, Clusters: clusters}
	volume, problem := shelf.VolumeFor(claim)
	if problem != "" || volume == nil {
		return reasonVolumeTaken, problem
	}
	goesTo, let := "no cluster", handmade.LetVolumesIn("NAME", v1alpha1.ClusterAllows{})
	if shelf.Open() {
		var in []string
		breakdown := identity.BreakdownOf(claim)
		for _, cluster := range clusters {
			if _, has := breakdown[cluster.Name]; has {
				in = append(in, cluster.Name)
			}
		}
		if !handmade.ClosedTo(in, clusters) {
			return "", ""
		}
		goesTo, let = "other clusters than "+strings.Join(in, ", ")+", where the claim is", handmade.LetVolumesIn(in[0], allowedIn(in[0], clusters))
	}
	return reasonVolumeStays, fmt.Sprintf("it is for PersistentVolume %s of the logical cluster, which goes to %s: let such volumes go there along with "+
		"their claims (%s), or make it in the cluster where the claim is to be, and none here", volume.Name, goesTo, let)
}

func allowedIn(name string, clusters []*v1alpha1.Cluster) v1alpha1.ClusterAllows {
	if i := slices.IndexFunc(clusters, func(c *v1alpha1.Cluster) bool { return c.Name == name }); i >= 0 {
		return clusters[i].Spec.Allows
	}
	return v1alpha1.ClusterAllows{}
}

// volumeHandler looks again at the claims that a PersistentVolume is for, or may be, and at what waits.
func (c *claims) volumeHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		obj = caches.Last(obj)
		volume, ok := obj.(*corev1.PersistentVolume)
		if !ok {
			return
		}
		all, _ := c.lister.List(labels.Everything()) // listing from a cache cannot fail
		for _, claim := range all {
			if handmade.MayBeFor(volume, claim) {
				c.queue.Add(cache.MetaObjectToName(claim))
			}
		}
	}
	changed := func(obj any) {
		look(obj)
		c.enqueueWaiting()
		c.changed()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed,
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.PersistentVolume), obj.(*corev1.PersistentVolume)
			if before.ResourceVersion != after.ResourceVersion {
				look(before)
				changed(obj)
			}
		},
	}
}
