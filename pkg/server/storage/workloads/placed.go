package workloads

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// placedStrategy decides where a workload runs while it is created, updated or scaled, and keeps the decision out of users' hands.
// Mirrors, which share the storage of some kinds with workloads, pass through.
type placedStrategy struct {
	builtin.Strategy
	reader reader
	placer Placer
	// unheld tells that objects of the kind are not held by our finalizer: they have another way to wait for their cluster.
	unheld bool
	// copied reports whether a decision that somebody writes has been read from what shows the object, and not made up. Optional.
	copied func(ctx context.Context, old runtime.Object, decision string) bool
}

func (s placedStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if identity.WritesMirrors(ctx) {
		s.Strategy.PrepareForCreate(ctx, obj)
		return
	}
	accessor := obj.(metav1.Object)
	said := saidRevisions(ctx, accessor, nil)
	for _, key := range metadata.ManagedAnnotations {
		if _, ok := accessor.GetAnnotations()[key]; ok {
			metadata.WarnManaged(ctx, key)
			metadata.SetAnnotation(accessor, key, "")
		}
	}
	if s.reader.mirror(obj) || identity.Tries(ctx) { // somebody else's to carry out, or nobody's
		s.Strategy.PrepareForCreate(ctx, obj)
		return
	}
	s.hold(accessor)
	s.place(ctx, obj, nil)
	release(accessor, nil, said)
	s.Strategy.PrepareForCreate(ctx, obj)
}

func (s placedStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	// The decision comes first: the stock strategy counts a generation when an annotation has changed.
	if !identity.WritesMirrors(ctx) {
		s.keep(ctx, obj, old)
	}
	if projection.Orphans(old.(metav1.Object)) {
		// The garbage collector is about to take the finalizer away that tells so, and clusters may be asked much later.
		metadata.SetAnnotation(obj.(metav1.Object), v1alpha1.AnnotationOrphan, "true")
	}
	s.Strategy.PrepareForUpdate(ctx, obj, old)
}

// keep keeps through an update of somebody else what is ours, and decides anew where that matters.
func (s placedStrategy) keep(ctx context.Context, obj, old runtime.Object) {
	accessor := obj.(metav1.Object)
	said := saidRevisions(ctx, accessor, old.(metav1.Object))
	if s.reader.mirror(old) {
		if s.unheld || s.reader.mirror(obj) || accessor.GetDeletionTimestamp() != nil {
			return
		}
		// What controlled it has let go of it: it is a workload from now on, which is where its mirror has shown it.
		metadata.SetAnnotation(accessor, v1alpha1.AnnotationPlacement, metadata.Annotation(old, v1alpha1.AnnotationPlacement))
		s.hold(accessor)
	} else {
		s.forgetCopied(ctx, accessor, old)
		metadata.KeepManaged(ctx, obj, old)
		keepFinalizer(accessor, old.(metav1.Object))
	}
	if accessor.GetDeletionTimestamp() == nil {
		s.place(ctx, obj, old)
	}
	release(accessor, old.(metav1.Object), said)
}

// forgetCopied leaves out a decision that is no news to us, so that nobody is told that his is ignored.
func (s placedStrategy) forgetCopied(ctx context.Context, obj metav1.Object, old runtime.Object) {
	is, present := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if s.copied != nil && present && is != metadata.Annotation(old, v1alpha1.AnnotationPlacement) && s.copied(ctx, old, is) {
		metadata.SetAnnotation(obj, v1alpha1.AnnotationPlacement, "")
	}
}

// hold gives an object our finalizer, unless its kind goes without.
func (s placedStrategy) hold(obj metav1.Object) {
	if !s.unheld && !slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerProjection) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), v1alpha1.FinalizerProjection))
	}
}

// Validate reports a malformed annotation of the user's beside the stock strategy's own findings.
func (s placedStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return slices.Concat(s.Strategy.Validate(ctx, obj), validatePin(obj), validateVolumes(obj), s.validateTemplates(ctx, obj, nil))
}

// validateTemplates reports marks of Manifold's own in what others write.
func (s placedStrategy) validateTemplates(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if identity.WritesMirrors(ctx) {
		return nil // before the object is converted: mirrors are most of what is written
	}
	var before projection.Object
	now, err := s.reader.versioned(obj)
	if err == nil && old != nil {
		before, err = s.reader.versioned(old)
	}
	if err != nil {
		return nil // validation refuses the object with a better message than we could give
	}
	return validateTemplates(ctx, now, before)
}

func (s placedStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := append(s.Strategy.ValidateUpdate(ctx, obj, old), s.validateTemplates(ctx, obj, old)...)
	// An object that was stored with a bad pin, by an older version say, must stay editable in everything else.
	if was, pinned := pinText(old); !pinned || was != metadata.Annotation(obj, v1alpha1.AnnotationClusters) {
		errs = append(errs, validatePin(obj)...)
	}
	if metadata.Annotation(old, v1alpha1.AnnotationVolumes) != metadata.Annotation(obj, v1alpha1.AnnotationVolumes) {
		errs = append(errs, validateVolumes(obj)...)
	}
	return errs
}

// place writes the decision on obj. What cannot be decided yet is stored without one: the placement controller tries again and tells
// why it could not.
func (s placedStrategy) place(ctx context.Context, obj, old runtime.Object) {
	w, err := s.reader.workload(obj)
	if err != nil {
		// Validation refuses the object with a better message than we could give.
		return
	}
	s.warnOfDevices(ctx, w, old)
	var current placement.Decision
	if old != nil {
		if current, err = placement.ParseDecision(metadata.Annotation(old, v1alpha1.AnnotationPlacement)); err != nil {
			current = nil
		}
		if before, err := s.reader.workload(old); err == nil && len(current) > 0 {
			// What has started is told by the status, which an update of the rest leaves out.
			if before.Fixed {
				if !reflect.DeepEqual(before.Pin, w.Pin) {
					warning.AddWarning(ctx, "", fmt.Sprintf("%s %q stays where it was started, whatever is chosen now", w.GVK.Kind, w.Name))
				}
				return
			}
			if sameDemand(before, w) {
				return
			}
			if !maps.Equal(before.Requests, w.Requests) {
				w.Failures = nil // what could not be scheduled asked for something else
			}
			w.Repinned = w.Pin != nil && !reflect.DeepEqual(before.Pin, w.Pin)
			w.Fixed = false // what this update starts is told so together with the decision
		}
	}
	result, ready := s.placer.Place(w, current)
	if !ready {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is not placed yet: the clusters are not known yet", w.GVK.Kind, w.Name))
		return
	}
	accessor := obj.(metav1.Object)
	if kind, ok := summary.ForResource(s.reader.kind.Resource); ok && kind.Breakdown {
		status := metadata.Annotation(obj, v1alpha1.AnnotationStatus)
		if w.Awaits {
			current = current.Begun() // others have nothing that could leave them
		}
		if leaving := summary.Leaving(status, current, result.Decision, w.First); leaving != status {
			metadata.SetAnnotation(accessor, v1alpha1.AnnotationStatus, leaving)
		}
	}
	if len(result.Decision) == 0 {
		yet := " yet"
		if w.Never != "" {
			yet = ""
		}
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is not placed%s: %s", w.GVK.Kind, w.Name, yet, result.Message()))
		metadata.SetAnnotation(accessor, v1alpha1.AnnotationPlacement, "")
		return
	}
	if len(result.Tied) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q: %s", w.GVK.Kind, w.Name, result.Message()))
	}
	metadata.SetAnnotation(accessor, v1alpha1.AnnotationPlacement, result.Annotation())
	s.placer.Placed(w, result.Decision)
}

// sameDemand reports whether an update left alone everything that a decision depends on. Then the decision stays without being asked
// for again: what clusters do meanwhile is the placement controller's business.
func sameDemand(before, after placement.Workload) bool {
	return before.Replicas == after.Replicas &&
		maps.Equal(before.Requests, after.Requests) &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Views, after.Views) &&
		before.Recreates == after.Recreates && sameClasses(before.Template, after.Template) &&
		reflect.DeepEqual(before.Pin, after.Pin)
}

// sameClasses reports whether pods of two templates need the same classes of their cluster.
func sameClasses(before, after *corev1.PodTemplateSpec) bool {
	if before == nil || after == nil {
		return before == after
	}
	return before.Spec.PriorityClassName == after.Spec.PriorityClassName && ptr.Equal(before.Spec.RuntimeClassName, after.Spec.RuntimeClassName)
}

// keepFinalizer holds our finalizer through updates that know nothing of it. Once the object is being deleted it may be taken away by
// hand, as with any other object that hangs.
func keepFinalizer(obj, old metav1.Object) {
	if old.GetDeletionTimestamp() != nil || slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerProjection) ||
		!slices.Contains(old.GetFinalizers(), v1alpha1.FinalizerProjection) {
		return
	}
	obj.SetFinalizers(append(obj.GetFinalizers(), v1alpha1.FinalizerProjection))
}

func validatePin(obj runtime.Object) field.ErrorList {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("metadata"), err)}
	}
	pin, ok := accessor.GetAnnotations()[v1alpha1.AnnotationClusters]
	if !ok {
		return nil
	}
	return v1alpha1.ValidatePin(pin, field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationClusters))
}

// validateVolumes refuses a word about volumes that nobody knows.
func validateVolumes(obj runtime.Object) field.ErrorList {
	value, set := obj.(metav1.Object).GetAnnotations()[v1alpha1.AnnotationVolumes]
	if !set || value == v1alpha1.VolumesRecreate {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationVolumes)
	return field.ErrorList{field.NotSupported(path, value, []string{v1alpha1.VolumesRecreate})}
}

func pinText(obj runtime.Object) (text string, pinned bool) {
	text, pinned = obj.(metav1.Object).GetAnnotations()[v1alpha1.AnnotationClusters]
	return text, pinned
}
