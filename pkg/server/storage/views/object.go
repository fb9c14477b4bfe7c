package views

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// hidden are the annotations that mean nothing in the view of one cluster. What is written through it leaves them as they are.
var hidden = append([]string{v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus}, metadata.ViewAnnotations...)

// looker looks at objects of a kind through the view of a cluster.
type looker struct {
	kind    projection.Kind
	project Project
	cluster string
	// controls returns the Deployment that controls an object, with how to look at it, nil if it is not there.
	controls func(above projection.Object) (projection.Object, looker)
}

// versioned returns an object in the version that is projected. It shares memory with obj; nobody changes it.
func (l looker) versioned(obj runtime.Object) (projection.Object, error) {
	out := l.kind.New()
	if err := legacyscheme.Scheme.Convert(obj, out, nil); err != nil {
		return nil, fmt.Errorf("read a %s from a %T: %w", l.kind.GVK.Kind, obj, err)
	}
	return out, nil
}

// sees reports whether the cluster has, or is to have, a part of an object.
func (l looker) sees(above projection.Object) bool {
	if l.owns(above) {
		return true
	}
	if pod, ok := above.(*corev1.Pod); ok {
		return identity.Concerns(pod, l.cluster)
	}
	_, decided := identity.DecisionOf(above)[l.cluster]
	switch {
	case l.kind.Workload && !decided && l.kind.Mirror(above):
		// A cluster with overrides may have it under another name, so it does not say that it is there.
		owner, through := l.controls(above)
		return owner != nil && through.sees(owner)
	case l.kind.Workload:
		return decided
	case l.kind.Mirror(above):
		from := identity.ShownFrom(above)
		return from == "" || from == l.cluster
	}
	return !identity.OfAnotherView(above, l.cluster)
}

// owns reports whether an object is the cluster's, or what the cluster holds of it is, so that what is written through its view changes nothing elsewhere: a
// workload by its own pin, which its user may have written as well; anything else was made through the view. What shows something of a cluster is that
// cluster's.
func (l looker) owns(above projection.Object) bool {
	if _, pod := above.(*corev1.Pod); l.kind.Mirror(above) {
		return (pod || l.kind.Resource == identity.Claims) && identity.ShownFrom(above) == l.cluster
	}
	return l.heldBy(above).Index(l.cluster) >= 0
}

// neverHere reports whether an object, as long as it exists, is another cluster's: then not even its name is told. What was made through a view stays that
// cluster's, and so does what shows something of a cluster.
func (l looker) neverHere(obj runtime.Object) bool {
	above, err := l.versioned(obj)
	switch {
	case err != nil:
		return true
	case l.kind.Mirror(above):
		from := identity.ShownFrom(above)
		return from != "" && from != l.cluster
	}
	return !l.kind.Workload && identity.OfAnotherView(above, l.cluster)
}

// refusal says why an object is not written through the view, nil if it is.
func (l looker) refusal(above projection.Object) error {
	switch {
	case !l.sees(above):
		return apierrors.NewNotFound(l.kind.Resource.GroupResource(), above.GetName())
	case l.owns(above):
		return nil
	}
	return apierrors.NewForbidden(l.kind.Resource.GroupResource(), above.GetName(), fmt.Errorf("it is not cluster %q's alone: %s. Write it at the logical "+
		"cluster itself, by the same address without %s, or make one of another name through the view", l.cluster, l.whose(above), v1alpha1.ViewPath(l.cluster)))
}

// whose says which clusters have something of an object.
func (l looker) whose(above projection.Object) string {
	through := identity.MadeThrough(above)
	switch {
	case l.kind.Mirror(above):
		return "it shows what something else makes"
	case len(through) == 1:
		return fmt.Sprintf("it was made through the view of cluster %q", through[0])
	case len(through) > 0:
		return "it was made through the views of clusters " + strings.Join(through, ", ")
	case !l.kind.Workload:
		return "it was not made through a view, and goes wherever workloads need it"
	}
	if pin := above.GetAnnotations()[v1alpha1.AnnotationClusters]; pin != "" {
		return fmt.Sprintf("it is pinned to %s", pin)
	}
	return "it was not made through a view, and placement decides which clusters run it"
}

// others names the clusters beside this one that hold an object by their views.
func (l looker) others(above projection.Object) string {
	names := slices.DeleteFunc(l.heldBy(above).Clusters(), func(name string) bool { return name == l.cluster })
	return strings.Join(names, ", ")
}

// occupied is the answer to who makes an object whose name is taken by one that the cluster has no part of, and cannot have.
func (l looker) occupied(above projection.Object, because string) error {
	err := apierrors.NewAlreadyExists(l.kind.Resource.GroupResource(), above.GetName())
	err.ErrStatus.Message += fmt.Sprintf(" in the logical cluster, and is not cluster %q's: %s. %s: use another name or another namespace for each cluster", l.cluster, l.whose(above), because)
	return err
}

// show returns an object as the cluster is to hold it, in the version that storage has it in, and false if it has no part of it. It leaves obj as it is.
func (l looker) show(ctx context.Context, obj runtime.Object) (shown runtime.Object, visible bool, err error) {
	above, err := l.versioned(obj)
	if err != nil || !l.sees(above) {
		return nil, false, err
	}
	view, apart := identity.ViewsOf(above).Of(l.cluster)
	if apart {
		if above, err = l.held(above, view); err != nil {
			return nil, false, err
		}
	}
	seen, changed := l.seen(ctx, above)
	if !changed && !apart {
		out := obj.DeepCopyObject()
		return out, true, hide(out)
	}
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := legacyscheme.Scheme.Convert(seen, out, nil); err != nil {
		return nil, false, fmt.Errorf("show a %s: %w", l.kind.GVK.Kind, err)
	}
	return out, true, hide(out)
}

// seen returns a workload with the spec that its projection has, and the labels and annotations, but for the marks that mean something below. It says
// whether it differs. What shows what runs is what it shows, and a pod that a user made runs as it is.
func (l looker) seen(ctx context.Context, above projection.Object) (out projection.Object, changed bool) {
	if !l.kind.Workload || l.kind.Mirror(above) || l.kind.Resource == identity.Pods {
		return above, false
	}
	projected, err := l.project(l.kind, above, l.cluster)
	if err != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is shown as it stands in the logical cluster: %s", l.kind.GVK.Kind, above.GetName(), err))
		return above, false
	}
	out = above.DeepCopyObject().(projection.Object)
	spec(out).Set(spec(projected))
	out.SetLabels(blend(above.GetLabels(), projected.GetLabels(), false))
	out.SetAnnotations(blend(above.GetAnnotations(), projected.GetAnnotations(), true))
	count(out, identity.BreakdownOf(above), l.cluster)
	return out, true
}

// internalOf is the version that storage has objects of a kind in.
func internalOf(kind projection.Kind) schema.GroupVersion {
	return schema.GroupVersion{Group: kind.GVK.Group, Version: runtime.APIVersionInternal}
}

// bare takes off an object who it is and how it stands.
func bare(of projection.Object) {
	value := reflect.ValueOf(of).Elem()
	for _, name := range []string{"TypeMeta", "ObjectMeta", "Status"} {
		if f := value.FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
}

// spec is the spec of a workload.
func spec(of projection.Object) reflect.Value { return reflect.ValueOf(of).Elem().FieldByName("Spec") }

// blend returns what an object in a view has of labels or annotations: those of the projection, and what of the object above steers Manifold. Kept
// are those as well that no cluster gets, such as what kubectl remembers of the last apply.
func blend(above, projected map[string]string, kept bool) map[string]string {
	out := map[string]string{}
	for key, value := range above {
		if kept || ofManifold(key) {
			out[key] = value
		}
	}
	for key, value := range projected {
		if !ofManifold(key) {
			out[key] = value
		}
	}
	return out
}

// ofManifold reports whether a key is Manifold's, or delivery's.
func ofManifold(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == v1alpha1.GroupName || strings.HasSuffix(domain, "."+v1alpha1.GroupName)
}

// hide takes what means nothing in a view off an object that is nobody else's.
func hide(obj runtime.Object) error {
	accessor, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("a %T has no metadata", obj)
	}
	annotations := maps.Clone(accessor.GetAnnotations())
	for _, key := range hidden {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	accessor.SetAnnotations(annotations)
	return nil
}

// stamp makes an object the cluster's alone. It refuses one that its writer pins elsewhere. Old is what there was before, nil for nothing.
func (l looker) stamp(obj, old metav1.Object) error {
	if pin, pinned := obj.GetAnnotations()[v1alpha1.AnnotationClusters]; pinned && strings.TrimSpace(pin) != l.cluster {
		return apierrors.NewInvalid(l.kind.GVK.GroupKind(), obj.GetName(), field.ErrorList{field.Invalid(
			field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationClusters), pin,
			fmt.Sprintf("what is written through the view of cluster %q is pinned there: leave the annotation out", l.cluster))})
	}
	for _, key := range metadata.ViewAnnotations {
		if said, has := obj.GetAnnotations()[key]; has && (key != v1alpha1.AnnotationView || said != l.cluster) {
			return apierrors.NewForbidden(l.kind.Resource.GroupResource(), obj.GetName(), fmt.Errorf("metadata.annotations[%s] is reserved for Manifold", key))
		}
	}
	if secret, ok := obj.(*api.Secret); ok && secret.Type == api.SecretTypeServiceAccountToken {
		return apierrors.NewForbidden(l.kind.Resource.GroupResource(), obj.GetName(), fmt.Errorf("a token that is made for a Secret of type %s would be good "+
			"beyond the view of cluster %q", secret.Type, l.cluster))
	}
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range hidden {
		delete(annotations, key)
		if old != nil && old.GetAnnotations()[key] != "" {
			annotations[key] = old.GetAnnotations()[key]
		}
	}
	annotations[v1alpha1.AnnotationClusters] = l.cluster
	if !l.kind.Workload {
		annotations[v1alpha1.AnnotationView] = l.cluster
	}
	obj.SetAnnotations(annotations)
	return l.pinJobs(obj)
}

// merge returns what becomes of an object above when somebody changes what the view shows of it, from seen to wanted: what was changed is changed above,
// and what the view alone shows, as by the override of a policy, is not written there. All are in the version that storage has them in.
func (l looker) merge(above, seen, wanted runtime.Object) (runtime.Object, error) {
	was, err := l.versioned(above)
	if err != nil {
		return nil, err
	}
	from, err := l.versioned(seen)
	if err != nil {
		return nil, err
	}
	to, err := l.versioned(wanted)
	if err != nil {
		return nil, err
	}
	out := wanted.DeepCopyObject()
	if l.differs(was, from) {
		merged, err := l.rebase(was, from, to)
		if err != nil {
			return nil, err
		}
		out = reflect.New(reflect.TypeOf(above).Elem()).Interface().(runtime.Object)
		if err := legacyscheme.Scheme.Convert(merged, out, nil); err != nil {
			return nil, fmt.Errorf("change a %s: %w", l.kind.GVK.Kind, err)
		}
	}
	accessor := out.(metav1.Object)
	accessor.SetResourceVersion(to.GetResourceVersion()) // which says what the writer has seen, if anything
	if l.kind.Mirror(was) {
		return out, restore(accessor, above.(metav1.Object))
	}
	return out, l.stamp(accessor, above.(metav1.Object))
}

// restore gives an object the hidden annotations of the one before.
func restore(obj, old metav1.Object) error {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range hidden {
		if value, has := old.GetAnnotations()[key]; has {
			annotations[key] = value
		}
	}
	obj.SetAnnotations(annotations)
	return nil
}

// differs reports whether a view shows a workload otherwise than it stands.
func (l looker) differs(above, seen projection.Object) bool {
	if !l.kind.Workload || l.kind.Resource == identity.Pods {
		return false
	}
	return !equality.Semantic.DeepEqual(spec(above).Interface(), spec(seen).Interface()) ||
		!maps.Equal(above.GetLabels(), seen.GetLabels()) || !maps.Equal(shownAnnotations(above), shownAnnotations(seen))
}

func shownAnnotations(of metav1.Object) map[string]string {
	out := maps.Clone(of.GetAnnotations())
	maps.DeleteFunc(out, func(key, _ string) bool { return slices.Contains(hidden, key) })
	return out
}

// rebase carries the difference between two objects over to a third one, as kubectl apply does.
func (l looker) rebase(above, from, to projection.Object) (projection.Object, error) {
	var texts [3][]byte
	for i, obj := range []projection.Object{above, from, to} {
		text, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", l.kind.GVK.Kind, above.GetName(), err)
		}
		texts[i] = text
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(texts[1], texts[2], l.kind.New())
	if err != nil {
		return nil, fmt.Errorf("compare %s %q with what cluster %q is to hold of it: %w", l.kind.GVK.Kind, above.GetName(), l.cluster, err)
	}
	merged, err := strategicpatch.StrategicMergePatch(texts[0], patch, l.kind.New())
	if err != nil {
		return nil, fmt.Errorf("change %s %q as its view for cluster %q: %w", l.kind.GVK.Kind, above.GetName(), l.cluster, err)
	}
	out := l.kind.New()
	if err := json.Unmarshal(merged, out); err != nil {
		return nil, fmt.Errorf("read %s %q as it was changed: %w", l.kind.GVK.Kind, above.GetName(), err)
	}
	return out, nil
}
