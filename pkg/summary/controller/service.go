package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// syncService brings the status of a Service up to date.
func (c *Controller) syncService(ctx context.Context, s *corev1.Service) error {
	if !c.complete() {
		return nil // a syncer that starts looks at all of its Services
	}
	next := s.DeepCopy()
	next.Status = summary.Service(s, c.serviceReports(s))
	if equality.Semantic.DeepEqual(s.Status, next.Status) {
		return nil
	}
	_, err := c.Client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
