package workloads

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// saidRevisions takes from an object the revisions that delivery says its clusters are to hold, and puts back what old, which may be nil, has in
// their place. It is nil if nobody says any. What cannot be read has been refused by admission.
func saidRevisions(ctx context.Context, obj, old metav1.Object) placement.Decision {
	text, said := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if !said || !identity.ByDelivery(ctx) {
		return nil
	}
	before := ""
	if old != nil {
		before = old.GetAnnotations()[v1alpha1.AnnotationPlacement]
	}
	metadata.SetAnnotation(obj, v1alpha1.AnnotationPlacement, before)
	decision, err := placement.ParseDecision(text)
	if err != nil || decision.CheckRevisions() != nil {
		return nil
	}
	return decision
}

// release has the clusters that obj is placed on hold the revisions that are said. Which clusters these are, and what each of them runs, is what was
// decided, whatever is said of it.
func release(obj, old metav1.Object, said placement.Decision) {
	annotation := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if len(said) == 0 || annotation == "" {
		return
	}
	var last placement.Decision
	if old != nil {
		last, _ = placement.ParseDecision(old.GetAnnotations()[v1alpha1.AnnotationPlacement]) // one that cannot be read was decided anew
	}
	awaits := obj.GetAnnotations()[v1alpha1.AnnotationAwaits] != ""
	if next, err := placement.Release(annotation, last, said, awaits); err == nil && next != annotation {
		metadata.SetAnnotation(obj, v1alpha1.AnnotationPlacement, next)
	}
}
