package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// reasonVolumeStays is that of the event on a claim whose volume was made by hand in the logical cluster, where nothing can mount it.
const reasonVolumeStays = "VolumeStaysAbove"

// tellVolume says that a claim waits for a PersistentVolume of the logical cluster. It is sent where it is used all the same: its cluster may have
// a volume of that name.
func (c *claims) tellVolume(claim *corev1.PersistentVolumeClaim) {
	if claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound || claim.Annotations[v1alpha1.AnnotationCluster] != "" {
		return
	}
	volumes, _ := c.volumes.List(labels.Everything()) // listing from a cache cannot fail
	name := ""
	for _, volume := range volumes {
		if placement.VolumeIsFor(volume, claim) && (name == "" || volume.Name < name) {
			name = volume.Name
		}
	}
	c.mu.Lock()
	known := c.stays[claim.UID] == name
	if name == "" {
		delete(c.stays, claim.UID)
	} else {
		c.stays[claim.UID] = name
	}
	c.mu.Unlock()
	if !known {
		c.Recorder.Event(claim, corev1.EventTypeWarning, reasonVolumeStays, fmt.Sprintf("it is for PersistentVolume %s of the logical cluster, which "+
			"goes to no cluster: volumes are each cluster's own, so make it in the cluster where the claim is to be", name))
	}
}

// volumeHandler looks again at the claims that a PersistentVolume is for.
func (c *claims) volumeHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tomb.Obj
		}
		volume, ok := obj.(*corev1.PersistentVolume)
		if !ok {
			return
		}
		all, _ := c.lister.List(labels.Everything()) // listing from a cache cannot fail
		for _, claim := range all {
			if placement.VolumeIsFor(volume, claim) {
				c.queue.Add(cache.MetaObjectToName(claim))
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look}
}
