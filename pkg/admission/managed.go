package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// managed keeps what Manifold alone writes in the metadata of objects, of any kind, out of the hands of others: what it has noted there stays
// through whatever they write, and the marks by which it knows its objects in clusters are never stored. The storage of workloads guards their
// decisions besides, where an object comes from who admits it.
type managed struct {
	*admission.Handler
}

var (
	_ admission.MutationInterface   = &managed{}
	_ admission.ValidationInterface = &managed{}
)

// Admit takes back what others change of it. An object that is made starts without.
func (*managed) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, old := othersWrite(a)
	if obj == nil {
		return nil
	}
	if isCustom(a.GetResource().GroupResource()) && a.GetSubresource() == "" {
		keepFinalizer(obj, old)
	}
	keepRoutes(ctx, a, obj, old)
	says := saysRevisions(a, obj)
	if says {
		if err := release(ctx, a, obj, old); err != nil {
			return err
		}
	}
	for _, pairs := range metadataPairs {
		except := leftAlone(a.GetResource().GroupResource(), pairs)
		keep(ctx, pairs, obj, old, func(key string) bool {
			if _, awaits := pairs.get(old)[key]; awaits && key == v1alpha1.AnnotationAwaits && delivers(a.GetUserInfo()) {
				return pairs.kept(key) // it lets go what awaits a release
			}
			return except(key) || says && key == v1alpha1.AnnotationPlacement && pairs.kept(key)
		})
	}
	return nil
}

// Validate refuses marks that Admit has left, or that a webhook has added since.
func (*managed) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, old := othersWrite(a)
	if obj == nil {
		return nil
	}
	errs := refuseRoutes(a, obj, old)
	for _, pairs := range metadataPairs {
		before, path := pairs.get(old), field.NewPath("metadata", pairs.field)
		for _, key := range reservedKeys(pairs.get(obj)) {
			was, had := before[key]
			if pairs.kept(key) && !forged(a, key) || had && was == pairs.get(obj)[key] {
				continue
			}
			errs = append(errs, field.Forbidden(path.Key(key), "is reserved for Manifold"))
		}
		for _, key := range reservedKeys(before) {
			if _, kept := pairs.get(obj)[key]; !kept && pairs.kept(key) && forged(a, key) {
				errs = append(errs, field.Forbidden(path.Key(key), "is reserved for Manifold and cannot be removed"))
			}
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}

// forged reports whether what Manifold notes under a key is nobody's to change after Admit: a webhook that says which revisions clusters hold.
// Of workloads, their storage has the last word, and of custom resources, which others place, whoever places them.
func forged(a admission.Attributes, key string) bool {
	kind, projected := projection.ForResource(a.GetResource())
	return key == v1alpha1.AnnotationPlacement && projected && !kind.Workload && !delivers(a.GetUserInfo())
}

// othersWrite returns the metadata of what somebody other than Manifold writes, and of what was there before; nil if there is nothing to see to.
func othersWrite(a admission.Attributes) (obj, old metav1.Object) {
	if isManifold(a.GetUserInfo()) && !delivers(a.GetUserInfo()) {
		return nil, nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil, nil // what has no metadata has nothing to keep
	}
	if a.GetOperation() == admission.Update {
		if old, err = meta.Accessor(a.GetOldObject()); err != nil {
			return nil, nil
		}
		return obj, old
	}
	return obj, &metav1.ObjectMeta{}
}

// isManifold reports whether somebody is one of the parts of Manifold that write what users may not. Controllers with rights of their own have
// their names after that of all.
func isManifold(u user.Info) bool {
	if u == nil {
		return false
	}
	name := u.GetName()
	return name == v1alpha1.ControllerUser || strings.HasPrefix(name, v1alpha1.ControllerUser+":") || strings.HasPrefix(name, v1alpha1.SyncerUserPrefix)
}

// leftAlone returns which reserved keys Admit leaves as they are on objects of a kind. Marks on a pod, whatever brings them, are for Validate
// to refuse: it must not come to run without what its user believes it to have. What Manifold notes on Deployments is for their storage, which
// knows a rollback.
func leftAlone(resource schema.GroupResource, pairs pairs) func(key string) bool {
	switch resource {
	case schema.GroupResource{Resource: "pods"}:
		return func(key string) bool { return !pairs.kept(key) }
	case schema.GroupResource{Group: "apps", Resource: "deployments"}:
		return pairs.kept
	}
	return func(string) bool { return false }
}

// isCustom reports whether a resource is neither of Kubernetes nor of Manifold.
func isCustom(resource schema.GroupResource) bool {
	return !scheme.Scheme.IsGroupRegistered(resource.Group) && !v1alpha1.IsOwnGroup(resource.Group)
}

// pairs are the labels or the annotations of an object.
type pairs struct {
	field string
	get   func(metav1.Object) map[string]string
	set   func(metav1.Object, map[string]string)
	// kept reports whether Manifold writes the key on objects of the logical cluster.
	kept func(key string) bool
}

var metadataPairs = []pairs{
	{"labels", metav1.Object.GetLabels, metav1.Object.SetLabels, func(string) bool { return false }},
	{"annotations", metav1.Object.GetAnnotations, metav1.Object.SetAnnotations, v1alpha1.KeptAnnotation},
}

// reservedKeys are those of the pairs that Manifold alone writes, sorted.
func reservedKeys(of map[string]string) []string {
	var out []string
	for key := range of {
		if v1alpha1.ReservedKey(key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// keep has obj keep what old has of the reserved keys, but for those that are left out. Marks that were stored by an earlier version may go.
func keep(ctx context.Context, pairs pairs, obj, old metav1.Object, except func(key string) bool) {
	before := pairs.get(old)
	next, changed := pairs.get(obj), false
	change := func(key, value string, has bool) {
		if !changed {
			next, changed = copied(next), true
		}
		if has {
			next[key] = value
		} else {
			delete(next, key)
		}
	}
	for _, key := range reservedKeys(pairs.get(obj)) {
		was, had := before[key]
		if except(key) || had && was == pairs.get(obj)[key] {
			continue
		}
		// A manifest without the key is the ordinary case; one with another value was written by hand.
		warning.AddWarning(ctx, "", fmt.Sprintf("metadata.%s[%s]: only Manifold writes this, so your value is ignored", pairs.field, key))
		change(key, was, had)
	}
	for _, key := range reservedKeys(before) {
		if _, has := pairs.get(obj)[key]; !has && pairs.kept(key) && !except(key) {
			change(key, before[key], true)
		}
	}
	if changed {
		pairs.set(obj, next)
	}
}

// copied leaves the map of an object alone that another one may share.
func copied(in map[string]string) map[string]string {
	out := make(map[string]string, len(in)+1)
	for key, value := range in {
		out[key] = value
	}
	return out
}

// keepFinalizer holds our finalizer through updates that know nothing of it. Once the object is being deleted it may be taken away by
// hand, as with any other object that hangs.
func keepFinalizer(obj, old metav1.Object) {
	if old.GetDeletionTimestamp() == nil && slices.Contains(old.GetFinalizers(), v1alpha1.FinalizerProjection) &&
		!slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerProjection) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), v1alpha1.FinalizerProjection))
	}
}
