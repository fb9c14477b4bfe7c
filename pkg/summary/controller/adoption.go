package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// adopt gives a ReplicaSet that a Deployment's controller has taken over in a cluster to the Deployment above. From then on it is a mirror
// like those that the controller made, and placed no more.
func (c *Controller) adopt(ctx context.Context, key identity.Key, in summary.Object) (adopted bool, err error) {
	kind, _ := projection.ForResource(key.Resource)
	by := c.adopter(kind, key, in)
	if by == nil {
		return false, nil
	}
	client, err := typed.For(c.Client, key.Resource, key.Namespace)
	if err != nil {
		return false, err
	}
	_, err = records.Write(ctx, client, in, records.Change{
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: "", v1alpha1.AnnotationStatus: ""}, Release: true, Owner: by,
	})
	return err == nil, err
}

// adopter returns what has taken an object over in any cluster, or nil. What somebody controls above is not to be had.
func (c *Controller) adopter(kind projection.Kind, key identity.Key, in summary.Object) *metav1.OwnerReference {
	if !kind.Yields || metav1.GetControllerOf(in) != nil {
		return nil
	}
	for _, s := range c.Reports.Reporters() {
		if by := s.Adopter(key, in); by != nil && c.wouldAdopt(by, in) {
			return by
		}
	}
	return nil
}

// wouldAdopt reports whether a controller above would take an object over as well: its selector meets it. A cluster that says it has been
// taken over by anything else is not heard.
func (c *Controller) wouldAdopt(by *metav1.OwnerReference, in summary.Object) bool {
	obj, exists, err := c.stores[deploymentResource].GetByKey(in.GetNamespace() + "/" + by.Name)
	if err != nil || !exists {
		return false
	}
	d, ok := obj.(*appsv1.Deployment)
	if !ok || by.Kind != "Deployment" || d.UID != by.UID {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(in.GetLabels()))
}
