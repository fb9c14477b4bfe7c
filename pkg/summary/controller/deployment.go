package controller

import (
	"context"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// syncDeployment brings the status of a Deployment and its mirrored ReplicaSets up to date.
func (c *Controller) syncDeployment(ctx context.Context, d *appsv1.Deployment) error {
	now := c.gather(d)
	switch {
	case d.DeletionTimestamp != nil && !now.held:
		return c.release(ctx, d)
	case d.DeletionTimestamp != nil, now.pending:
		return nil // nobody waits for the status of what is going
	}
	revision, err := c.syncReplicaSets(ctx, d)
	if err != nil {
		return err
	}
	decision := syncer.DecisionOf(d)
	next := d.DeepCopy()
	next.Status = summary.Deployment(d, decision, now.reports, c.unplaced(d, decision), metav1.NewTime(c.Clock.Now()))
	setAnnotation(next, v1alpha1.AnnotationStatus, summary.BreakdownOf(now.reports).String())
	setAnnotation(next, annotationRevision, revision)
	if equality.Semantic.DeepEqual(d.Status, next.Status) && equality.Semantic.DeepEqual(d.Annotations, next.Annotations) {
		return nil
	}
	written, err := c.Client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.written.Mutation(written)
	return nil
}

// release lets a deleted Deployment go.
func (c *Controller) release(ctx context.Context, d *appsv1.Deployment) error {
	if !slices.Contains(d.Finalizers, v1alpha1.FinalizerProjection) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(d.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerProjection })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": d.UID, "resourceVersion": d.ResourceVersion, "finalizers": rest,
	}})
	if err != nil {
		return err
	}
	_, err = c.Client.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

const annotationRevision = "deployment.kubernetes.io/revision"

// setAnnotation sets an annotation of an object that is ours to change. An empty value leaves the revision as it is and removes nothing
// that is not there.
func setAnnotation(d *appsv1.Deployment, key, value string) {
	if value == "" {
		if key != annotationRevision {
			delete(d.Annotations, key)
		}
		return
	}
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
}
