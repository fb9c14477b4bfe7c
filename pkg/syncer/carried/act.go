package carried

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

func (v *Volumes) act(ctx context.Context, c carried) error {
	switch {
	case c.below != nil && v.Terms.LeftAsItIs():
		patch := map[string]any{"metadata": map[string]any{"uid": c.below.UID, "labels": map[string]any{v1alpha1.LabelLogicalCluster: nil}}}
		return v.patch(ctx, c.below.Name, patch)
	case c.below == nil:
		return v.bring(ctx, c)
	case c.below.DeletionTimestamp != nil:
		return nil // the watch tells when it is gone
	case c.mine && c.wanted && !c.held && spent(c.below):
		return v.remove(ctx, c.below) // and make it anew, for the claim that it is for now
	case c.mine && c.wanted:
		return v.apply(ctx, c.above, c.below)
	case c.held || c.mine && c.going:
		return v.retain(ctx, c.below)
	case v.reclaims(c):
		return v.reclaim(ctx, c.below)
	}
	return v.remove(ctx, c.below)
}

// bring has a volume come that is not there, if it is wanted.
func (v *Volumes) bring(ctx context.Context, c carried) error {
	switch {
	case !c.wanted:
		return nil
	case c.stranger:
		ref := c.above.Spec.ClaimRef
		return &writer.ConflictError{Reason: fmt.Sprintf("its claim %s/%s is the name of a claim there that is not ours", ref.Namespace, ref.Name)}
	case c.above.DeletionTimestamp != nil:
		return nil
	}
	return v.create(ctx, c.above)
}

// spent reports whether a volume of a cluster has been given up by a claim there, after which none can have it.
func spent(live *corev1.PersistentVolume) bool {
	return live.Status.Phase == corev1.VolumeReleased || live.Status.Phase == corev1.VolumeFailed
}

// reclaims reports whether the cluster is to do away with the data of a volume. That it was released here is on record above.
func (v *Volumes) reclaims(c carried) bool {
	if !c.mine || c.claimed || c.above.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false
	}
	ref := c.above.Spec.ClaimRef
	return ref != nil && ref.UID != "" && c.below.Status.Phase != corev1.VolumeAvailable && c.below.Status.Phase != corev1.VolumePending
}

// create makes a volume where there is none of that name, whoever's.
func (v *Volumes) create(ctx context.Context, above *corev1.PersistentVolume) error {
	found, err := v.Client.CoreV1().PersistentVolumes().Get(ctx, above.Name, metav1.GetOptions{})
	switch {
	case err == nil && v.IsProjection(found, above):
		return writer.ErrNotYet // the watch is about to show it
	case err == nil:
		return &writer.ConflictError{Reason: fmt.Sprintf("the cluster has a PersistentVolume %s already, which is not ours: rename one of them, or use that one by making none here",
			above.Name)}
	case !apierrors.IsNotFound(err):
		return err
	}
	klog.FromContext(ctx).V(2).Info("Carrying a PersistentVolume", "name", above.Name)
	desired, err := projection.CarriedVolume(above, corev1.PersistentVolumeReclaimRetain, v.Target())
	if err != nil {
		return err
	}
	// By apply, so that what is left out later goes, and without force, so that what somebody else has just made is not taken over.
	return v.write(ctx, desired, "", false)
}

// apply brings a volume of ours to what it should be.
func (v *Volumes) apply(ctx context.Context, above, live *corev1.PersistentVolume) error {
	desired, err := projection.CarriedVolume(above, corev1.PersistentVolumeReclaimRetain, v.Target())
	if err != nil || projection.CarriesVolume(desired, live) {
		return err
	}
	return v.write(ctx, desired, live.UID, true)
}

func (v *Volumes) write(ctx context.Context, desired *corev1.PersistentVolume, uid types.UID, force bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	delete(content, "status")
	metadata := content["metadata"].(map[string]any)
	delete(metadata, "creationTimestamp")
	if uid != "" {
		metadata["uid"] = string(uid)
	}
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	_, err = v.Client.CoreV1().PersistentVolumes().Patch(ctx, desired.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(force)})
	return err
}

// retain has the data of a volume outlive its claim here.
func (v *Volumes) retain(ctx context.Context, live *corev1.PersistentVolume) error {
	return v.setPolicy(ctx, live, corev1.PersistentVolumeReclaimRetain)
}

// reclaim has the cluster do away with a volume that its claim has released, and with its data.
func (v *Volumes) reclaim(ctx context.Context, live *corev1.PersistentVolume) error {
	above := v.Above.Volume(live.Name)
	if above == nil || !summary.HoldersOf(above)[v.Name].Released() {
		v.tellChanged(live.Name)
		return nil // that it is released is on its way to the record, which wakes us
	}
	return v.setPolicy(ctx, live, corev1.PersistentVolumeReclaimDelete)
}

func (v *Volumes) setPolicy(ctx context.Context, live *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy) error {
	if live.Spec.PersistentVolumeReclaimPolicy == policy {
		return nil
	}
	return v.patch(ctx, live.Name, map[string]any{
		"metadata": map[string]any{"uid": live.UID}, "spec": map[string]any{"persistentVolumeReclaimPolicy": policy},
	})
}

func (v *Volumes) patch(ctx context.Context, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = v.Client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return typed.IgnoreGone(err)
}

// remove takes a volume away whose data stays.
func (v *Volumes) remove(ctx context.Context, live *corev1.PersistentVolume) error {
	if live.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return v.retain(ctx, live) // the watch tells when it has that
	}
	klog.FromContext(ctx).V(2).Info("Removing a PersistentVolume", "name", live.Name)
	preconditions := metav1.NewUIDPreconditions(string(live.UID))
	preconditions.ResourceVersion = ptr.To(live.ResourceVersion)
	return typed.IgnoreGone(v.Client.CoreV1().PersistentVolumes().Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: preconditions}))
}
