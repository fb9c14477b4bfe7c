package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Which revision a cluster holds of an object is said by delivery alone, in the annotation that has the decision, together with the content: no
// cluster sees the one without the other. All else that it writes is what the files of users say, and is treated as if these had written it.

// delivers reports whether somebody is the controllers of delivery.
func delivers(u user.Info) bool { return u != nil && u.GetName() == v1alpha1.DeliveryUser }

// saysRevisions reports whether a request is one in which delivery says which revisions clusters hold.
func saysRevisions(a admission.Attributes, obj metav1.Object) bool {
	_, said := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	return said && delivers(a.GetUserInfo()) && a.GetSubresource() == ""
}

// release has an object carry the revisions that delivery says, and nothing else of what it says about placement. Of workloads, their storage
// sees to that, which may have to decide first.
func release(ctx context.Context, a admission.Attributes, obj, old metav1.Object) error {
	said, err := placement.ParseDecision(obj.GetAnnotations()[v1alpha1.AnnotationPlacement])
	if err == nil {
		err = said.CheckRevisions()
	}
	if err != nil {
		at := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationPlacement)
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())})
	}
	before, next := old.GetAnnotations()[v1alpha1.AnnotationPlacement], ""
	switch kind, projected := projection.ForResource(a.GetResource()); {
	case kind.Workload:
		return nil
	case isCustom(a.GetResource().GroupResource()), a.GetResource().Resource == "persistentvolumeclaims":
		next = releasedPlaced(before, said) // others decide where it goes
	case projected:
		next = contentsOf(said).String()
	default:
		warning.AddWarning(ctx, "", fmt.Sprintf("metadata.annotations[%s]: %s are not sent to clusters, so no cluster can hold a revision of them", v1alpha1.AnnotationPlacement, a.GetResource().Resource))
	}
	annotations := copied(obj.GetAnnotations())
	if annotations[v1alpha1.AnnotationPlacement] = next; next == "" {
		delete(annotations, v1alpha1.AnnotationPlacement)
	}
	obj.SetAnnotations(annotations)
	return nil
}

// releasedPlaced returns a decision with the revisions that are said for its clusters. One that cannot be read is written anew by whoever
// decides.
func releasedPlaced(annotation string, said placement.Decision) string {
	last, err := placement.ParseDecision(annotation)
	if err != nil {
		return annotation
	}
	next, err := placement.Release(annotation, last, said, false)
	if err != nil {
		return annotation
	}
	return next
}

// contentsOf are the revisions alone. Where an object goes that follows others is told by those. A cluster without a revision is named if others have
// one: it holds the object as it stands, which is not what a cluster would take over that nothing is said of.
func contentsOf(said placement.Decision) placement.Decision {
	if !said.Held() {
		return nil
	}
	out := placement.Decision{}
	for cluster, share := range said {
		out[cluster] = placement.Share{Revision: share.Revision, Target: share.Target}
	}
	return out
}
