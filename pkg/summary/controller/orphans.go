package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// orphanReplicaSets makes workloads of the ReplicaSets that a Deployment leaves behind in clusters which name them otherwise than the
// logical cluster does, as those of another Kubernetes version may: they cannot be renamed. The others have a mirror that becomes one.
func (c *Controller) orphanReplicaSets(ctx context.Context, in summary.Object) error {
	d, ok := in.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	for name, shares := range c.replicaSetShares(d) {
		for _, share := range shares {
			rs := share.ReplicaSet
			if rs.Name == name || rs.DeletionTimestamp != nil || ptr.Deref(rs.Spec.Replicas, 1) == 0 {
				continue
			}
			if err := c.createOrphan(ctx, summary.OrphanedReplicaSet(share)); err != nil {
				return err
			}
			if err := c.scaleToOwn(ctx, d.Namespace, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Controller) createOrphan(ctx context.Context, rs *appsv1.ReplicaSet) error {
	if c.taken(rs.Namespace, rs.Name) {
		return nil
	}
	written, err := c.Client.AppsV1().ReplicaSets(rs.Namespace).Create(ctx, rs, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.mirrors.Mutation(written)
	return nil
}

// scaleToOwn leaves a former mirror only the replicas that are its own, now that those of clusters which name it otherwise have a
// ReplicaSet to themselves.
func (c *Controller) scaleToOwn(ctx context.Context, namespace, name string) error {
	obj, exists, err := c.mirrors.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return err
	}
	rs := obj.(*appsv1.ReplicaSet)
	own := int32(syncer.DecisionOf(rs).Total())
	if metav1.GetControllerOf(rs) != nil || rs.DeletionTimestamp != nil || ptr.Deref(rs.Spec.Replicas, 1) == own {
		return nil
	}
	scaled := rs.DeepCopy()
	scaled.Spec.Replicas = ptr.To(own)
	return c.writeReplicaSet(ctx, scaled, rs)
}
