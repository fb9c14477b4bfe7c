package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// orphanReplicaSets makes workloads of the ReplicaSets that a Deployment leaves behind and that have no mirror of their name which would
// become one: clusters may name them otherwise than the logical cluster does, as those of another Kubernetes version may, and they cannot
// be renamed; or the Deployment went before there was a mirror.
func (c *Controller) orphanReplicaSets(ctx context.Context, in summary.Object) error {
	d, ok := in.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	byName, templates := map[string][]summary.ReplicaSetShare{}, map[string]*summary.Recorded{}
	for name, shares := range c.replicaSetShares(d) {
		for _, share := range shares {
			rs := share.ReplicaSet
			if rs.DeletionTimestamp != nil || ptr.Deref(rs.Spec.Replicas, 1) == 0 {
				continue
			}
			mirror, err := c.replicaSets.named(d.Namespace, name)
			if err != nil {
				return err
			}
			byName[rs.Name] = append(byName[rs.Name], share)
			templates[rs.Name] = c.templates.of(d, rs.Annotations[v1alpha1.AnnotationTemplate], mirror)
			if rs.Name == name {
				continue
			}
			if err := c.scaleToOwn(ctx, mirror); err != nil {
				return err
			}
		}
	}
	for name, shares := range byName {
		if templates[name] == nil || c.replicaSets.taken(d.Namespace, name) {
			continue
		}
		orphan := summary.OrphanedReplicaSet(d, *templates[name], shares)
		if orphan == nil {
			continue
		}
		if err := c.replicaSets.write(ctx, orphan, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// scaleToOwn leaves a former mirror only the replicas that are its own, now that those of clusters which name it otherwise have a
// ReplicaSet to themselves.
func (c *Controller) scaleToOwn(ctx context.Context, rs *appsv1.ReplicaSet) error {
	if rs == nil {
		return nil
	}
	own := int32(identity.DecisionOf(rs).Total())
	if metav1.GetControllerOf(rs) != nil || rs.DeletionTimestamp != nil || ptr.Deref(rs.Spec.Replicas, 1) == own {
		return nil
	}
	scaled := rs.DeepCopy()
	scaled.Spec.Replicas = ptr.To(own)
	return c.replicaSets.write(ctx, scaled, rs)
}
