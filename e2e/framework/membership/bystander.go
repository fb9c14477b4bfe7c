package membership

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// Bystander is somebody else's object in a cluster, as it was when it was made.
type Bystander struct {
	Side *framework.Side
	Was  *unstructured.Unstructured
}

// Changed returns an error unless the object is as it was.
func (b Bystander) Changed(ctx context.Context) error {
	resource, _ := meta.UnsafeGuessKindToResource(b.Was.GroupVersionKind())
	now, err := b.Side.Dynamic.Resource(resource).Namespace(b.Was.GetNamespace()).Get(ctx, b.Was.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("somebody else's object: %w", err)
	}
	if now.GetUID() != b.Was.GetUID() || now.GetResourceVersion() != b.Was.GetResourceVersion() {
		return errors.New("somebody else's object was changed: " + fmt.Sprint(now))
	}
	return nil
}

// Bystanders makes things in a cluster that have nothing to do with Manifold: in a namespace of their own, and in one of the scenario's.
func Bystanders(s *framework.Scenario, side *framework.Side) (check func()) {
	s.Helper()
	foreign := "foreign-" + s.Namespace
	side.Kubectl("create", "namespace", foreign)
	s.Cleanup(func() {
		for _, namespace := range []string{foreign, s.Namespace} {
			s.Environment.CleanupIn(s.T, side.API, "delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
		}
	})
	var all []Bystander
	for _, namespace := range []string{foreign, s.Namespace} {
		side := side.In(namespace)
		side.KubectlInput(manifests.Deployment("bystander", 1), "create", "-f", "-")
		side.Kubectl("create", "configmap", "bystander", "--from-literal=color=red")
		side.Kubectl("create", "serviceaccount", "bystander")
		framework.Await(side, "bystander", "runs", expect.Available(1))
		for _, resource := range []schema.GroupVersionResource{
			appsv1.SchemeGroupVersion.WithResource("deployments"),
			corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
		} {
			o, err := side.Dynamic.Resource(resource).Namespace(namespace).Get(s.Context(), "bystander", metav1.GetOptions{})
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, Bystander{Side: side, Was: o})
		}
	}
	return func() {
		s.Helper()
		for _, b := range all {
			if err := b.Changed(s.Context()); err != nil {
				s.Error(err)
			}
		}
	}
}
