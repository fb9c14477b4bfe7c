package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// managed keeps what Manifold alone writes on custom resources through whatever others write. The storage of built-in workloads does the
// same; that of custom resources is made anew whenever a definition changes.
type managed struct {
	*admission.Handler
}

var _ admission.MutationInterface = &managed{}

// managedAnnotations are written by Manifold alone.
var managedAnnotations = []string{v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus}

// Admit takes back what others change of it. An object that is made starts without.
func (*managed) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isCustom(a.GetResource().GroupResource()) || a.GetSubresource() != "" || a.GetUserInfo().GetName() == v1alpha1.ControllerUser {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil //nolint:nilerr // what has no metadata has nothing to keep
	}
	var old metav1.Object = &metav1.ObjectMeta{}
	if a.GetOperation() == admission.Update {
		if old, err = meta.Accessor(a.GetOldObject()); err != nil {
			return nil //nolint:nilerr // as above
		}
		keepFinalizer(obj, old)
	}
	keepAnnotations(ctx, obj, old)
	return nil
}

// isCustom tells whether a resource is neither of Kubernetes nor of Manifold.
func isCustom(resource schema.GroupResource) bool {
	return !scheme.Scheme.IsGroupRegistered(resource.Group) && resource.Group != v1alpha1.GroupName
}

func keepAnnotations(ctx context.Context, obj, old metav1.Object) {
	annotations, changed := obj.GetAnnotations(), false
	for _, key := range managedAnnotations {
		is, present := annotations[key]
		was, had := old.GetAnnotations()[key]
		if is == was && present == had {
			continue
		}
		// A manifest without the annotation is the ordinary case; one with another value was written by hand.
		if present {
			warning.AddWarning(ctx, "", fmt.Sprintf("metadata.annotations[%s]: written by Manifold alone, your value is ignored", key))
		}
		next := make(map[string]string, len(annotations)+1)
		for k, v := range annotations {
			next[k] = v
		}
		delete(next, key)
		if had {
			next[key] = was
		}
		annotations, changed = next, true
	}
	if changed {
		obj.SetAnnotations(annotations)
	}
}

// keepFinalizer holds our finalizer through updates that know nothing of it. Once the object is being deleted it may be taken away by
// hand, as with any other object that hangs.
func keepFinalizer(obj, old metav1.Object) {
	if old.GetDeletionTimestamp() == nil && slices.Contains(old.GetFinalizers(), v1alpha1.FinalizerProjection) &&
		!slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerProjection) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), v1alpha1.FinalizerProjection))
	}
}
