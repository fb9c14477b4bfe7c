package admission

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// What clusters hold otherwise than an object says goes to them past what is asked of the object itself, be it its schema or a policy. So delivery alone
// says it. Others may take it away: they may write the object, and delivery says it again where it still shares out requests.

// keepRoutes takes back what somebody other than delivery has said.
func keepRoutes(ctx context.Context, a admission.Attributes, obj, old metav1.Object) {
	if !saysRoutes(a, obj, old) {
		return
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("metadata.annotations[%s]: only Manifold writes this, so your value is ignored", delivery.AnnotationRoutes))
	annotations := copied(obj.GetAnnotations())
	if before, had := old.GetAnnotations()[delivery.AnnotationRoutes]; had {
		annotations[delivery.AnnotationRoutes] = before
	} else {
		delete(annotations, delivery.AnnotationRoutes)
	}
	obj.SetAnnotations(annotations)
}

// refuseRoutes refuses what a webhook has said since.
func refuseRoutes(a admission.Attributes, obj, old metav1.Object) field.ErrorList {
	if !saysRoutes(a, obj, old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(delivery.AnnotationRoutes), "is reserved for Manifold")}
}

// sharesOut reports whether somebody is one of those who deliver.
func sharesOut(u user.Info) bool {
	return delivers(u) || u != nil && u.GetName() == v1alpha1.AppDeploymentsUser
}

// saysRoutes reports whether somebody other than delivery says what clusters hold otherwise, or changes what is said.
func saysRoutes(a admission.Attributes, obj, old metav1.Object) bool {
	said, says := obj.GetAnnotations()[delivery.AnnotationRoutes]
	before, had := old.GetAnnotations()[delivery.AnnotationRoutes]
	return says && !sharesOut(a.GetUserInfo()) && !(had && before == said)
}
