package releases

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

type mapper struct {
	meta.RESTMapper
	world *world
}

func (mapper) Reset() {}

func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind == gizmoKind.GroupKind() {
		return &meta.RESTMapping{Resource: gizmoResource, Scope: meta.RESTScopeNamespace}, nil
	}
	if resource, is := fronted[kind]; is && !m.world.unserved {
		return &meta.RESTMapping{Resource: resource, Scope: meta.RESTScopeNamespace}, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// fronts reads the route of a world.
type fronts struct{ w *world }

func (fronts) Watch(context.Context, func(string)) {}

func (f fronts) Get(_ context.Context, kind schema.GroupKind, _, name string) (*unstructured.Unstructured, bool, error) {
	if f.w.front == nil || f.w.front.GroupVersionKind().GroupKind() != kind || f.w.front.GetName() != name {
		_, is := fronted[kind]
		return nil, is && !f.w.unserved, nil
	}
	return f.w.front.DeepCopy(), true, nil
}

// apply is what the server does: it stores what is applied, and placement has the shares that the pin says.
func (w *world) apply(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	if patch.GetPatchType() == types.MergePatchType {
		return w.pin(patch)
	}
	in := &unstructured.Unstructured{}
	if err := in.UnmarshalJSON(patch.GetPatch()); err != nil {
		return true, nil, err
	}
	key := in.GetKind() + "/" + in.GetName()
	dryRun, compared := len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0, in.GetUID() != ""
	if err := w.refuses[key]; err != nil && !dryRun {
		return true, nil, err
	}
	if sharesOut(patch.GetResource()) {
		return w.applyFront(in, dryRun)
	}
	if patch.GetResource() == gizmoResource {
		return w.applyGizmo(in, dryRun, compared)
	}
	informer := w.informer(patch.GetResource())
	if strings.HasSuffix(action.(clienttesting.PatchActionImpl).PatchOptions.FieldManager, "-shares") {
		return w.applyShares(informer, in)
	}
	if _, whole := in.Object["spec"]; !whole && (in.GetKind() == "Service" || in.GetKind() == "Ingress") { // what clusters hold otherwise, and nothing else
		w.writes = append(w.writes, key)
		old, _, _ := informer.GetIndexer().GetByKey(in.GetNamespace() + "/" + in.GetName())
		object := old.(runtime.Object).DeepCopyObject().(metav1.Object)
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationRoutes] = in.GetAnnotations()[v1alpha1.AnnotationRoutes]
		object.SetAnnotations(annotations)
		w.add(informer, object)
		return true, in, nil
	}
	generation := int64(1)
	if old, exists, _ := informer.GetIndexer().GetByKey(in.GetNamespace() + "/" + in.GetName()); exists {
		before := old.(metav1.Object)
		in.SetUID(before.GetUID())
		generation = before.GetGeneration() + 1
		w.annotate(in, manifold.AnnotationStatus, before.GetAnnotations()[manifold.AnnotationStatus])
		if routes := before.GetAnnotations()[v1alpha1.AnnotationRoutes]; routes != "" {
			w.annotate(in, v1alpha1.AnnotationRoutes, routes)
		}
	}
	in.SetGeneration(generation)
	if _, workload := workloadKinds[in.GetKind()]; workload {
		w.annotate(in, manifold.AnnotationPlacement, w.place(in).String())
	}
	switch {
	case dryRun && compared:
		w.tried = append(w.tried, key)
		return true, in, w.unfit[key]
	case dryRun:
		w.trials = append(w.trials, key)
		if w.admits != nil {
			w.admits(in)
		}
		return true, in, w.unfit[key]
	}
	w.writes = append(w.writes, key)
	typed, err := scheme.Scheme.New(in.GroupVersionKind())
	if err != nil {
		return true, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, typed); err != nil {
		return true, nil, err
	}
	w.add(informer, typed.(metav1.Object))
	in.SetResourceVersion(strconv.Itoa(w.version))
	in.SetUID(typed.(metav1.Object).GetUID())
	return true, in, nil
}

// applyShares is what the server does when nothing is applied but who holds which revision of what a ServiceAccount has written.
func (w *world) applyShares(informer cache.SharedIndexInformer, in *unstructured.Unstructured) (bool, runtime.Object, error) {
	old, _, _ := informer.GetIndexer().GetByKey("shop/" + in.GetName())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return true, nil, err
	}
	out := &unstructured.Unstructured{Object: content}
	w.annotate(out, manifold.AnnotationPlacement, in.GetAnnotations()[manifold.AnnotationPlacement])
	if workloadKinds[in.GetKind()] {
		w.annotate(out, manifold.AnnotationPlacement, w.place(out).String())
	}
	typed, err := scheme.Scheme.New(in.GroupVersionKind())
	if err != nil {
		return true, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, typed); err != nil {
		return true, nil, err
	}
	w.add(informer, typed.(metav1.Object))
	in.SetResourceVersion(strconv.Itoa(w.version))
	return true, in, nil
}

var ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")

// applyFront is what the server does when the route is applied: the whole of it, or what clusters hold of it otherwise.
func (w *world) applyFront(in *unstructured.Unstructured, dryRun bool) (bool, runtime.Object, error) {
	key := in.GetKind() + "/" + in.GetName()
	_, whole := in.Object["spec"]
	if dryRun {
		if whole {
			w.trials = append(w.trials, key)
		}
		return true, in, w.unfit[key]
	}
	w.writes = append(w.writes, key)
	if !whole {
		w.annotate(w.front, v1alpha1.AnnotationRoutes, in.GetAnnotations()[v1alpha1.AnnotationRoutes])
		w.front.SetResourceVersion(w.next())
		return true, w.front.DeepCopy(), nil
	}
	in = in.DeepCopy()
	in.SetUID("front")
	if w.front != nil {
		for _, kept := range []string{v1alpha1.AnnotationRoutes, manifold.AnnotationPlacement, manifold.AnnotationStatus} {
			w.annotate(in, kept, w.front.GetAnnotations()[kept])
		}
	}
	w.front = in
	w.front.SetResourceVersion(w.next())
	return true, w.front.DeepCopy(), nil
}

// pin is what the server does when nothing but the pin of a Deployment is written.
func (w *world) pin(patch clienttesting.PatchAction) (bool, runtime.Object, error) {
	obj, _, _ := w.informer(patch.GetResource()).GetIndexer().GetByKey(patch.GetNamespace() + "/" + patch.GetName())
	before := obj.(*appsv1.Deployment)
	change := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(patch.GetPatch(), &change); err != nil {
		return true, nil, err
	}
	if change.UID != before.UID || change.ResourceVersion != before.ResourceVersion {
		w.Errorf("Deployment %s is patched whatever it is: %s", before.Name, patch.GetPatch())
	}
	w.writes = append(w.writes, "pin "+before.Name)
	deployment := before.DeepCopy()
	maps.Copy(deployment.Annotations, change.Annotations)
	maps.DeleteFunc(deployment.Annotations, func(_, value string) bool { return value == "" }) // null takes it away
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return true, nil, err
	}
	deployment.Annotations[manifold.AnnotationPlacement] = w.place(&unstructured.Unstructured{Object: content}).String()
	w.add(w.informer(patch.GetResource()), deployment)
	return true, &unstructured.Unstructured{Object: content}, nil
}

var workloadKinds = map[string]bool{"Deployment": true}

func (w *world) annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[name] = value; value == "" {
		delete(annotations, name)
	}
	object.SetAnnotations(annotations)
}

// place decides as the pin and the policy say.
func (w *world) place(in *unstructured.Unstructured) placement.Decision {
	asked, _ := placement.ParseDecision(in.GetAnnotations()[manifold.AnnotationPlacement])
	replicas, _, _ := unstructured.NestedInt64(in.Object, "spec", "replicas")
	pin := in.GetAnnotations()[manifold.AnnotationClusters]
	if pin == "" {
		pin = "east" // where placement has it that nobody pins
	}
	policy, err := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().PlacementPolicies("shop").Get(in.GetLabels()[v1alpha1.LabelPlacement])
	out := placement.Decision{}
	for _, cluster := range strings.Split(pin, ",") {
		share := placement.Share{Replicas: int32(replicas), Revision: asked[cluster].Revision, Target: asked[cluster].Target}
		if err == nil && policy.Spec.Division != nil && policy.Spec.Division.Type == manifold.Divide {
			share.Replicas = policy.Spec.Division.Weights[cluster]
		}
		out[cluster] = share
	}
	return out
}

func (w *world) get(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.GetAction).GetName()
	if found := w.gizmos.whole[name]; found != nil && action.GetResource() == gizmoResource {
		return true, found.DeepCopy(), nil
	}
	if w.front != nil && w.front.GetName() == name && sharesOut(action.GetResource()) {
		return true, w.front.DeepCopy(), nil
	}
	if action.GetResource() == gizmoResource || sharesOut(action.GetResource()) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
	}
	if obj, exists, _ := w.informer(action.GetResource()).GetIndexer().GetByKey(action.GetNamespace() + "/" + name); exists {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		return true, &unstructured.Unstructured{Object: content}, err
	}
	return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
}

func (w *world) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.DeleteAction).GetName()
	w.writes = append(w.writes, "delete "+name)
	if action.GetResource() == gizmoResource {
		w.gizmos.remove(name)
		return true, nil, nil
	}
	if sharesOut(action.GetResource()) {
		w.front = nil
		return true, nil, nil
	}
	informer := w.informer(action.GetResource())
	if obj, exists, _ := informer.GetIndexer().GetByKey(action.GetNamespace() + "/" + name); exists {
		_ = informer.GetIndexer().Delete(obj)
	}
	return true, nil, nil
}

// own stores what is written of our own kinds.
func (w *world) own(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.UpdateActionImpl:
		return true, w.keep(a.GetObject()), nil
	case clienttesting.CreateActionImpl:
		return true, w.keep(a.GetObject()), nil
	case clienttesting.DeleteActionImpl:
		informer := w.ours.Manifold().V1alpha1().PlacementPolicies().Informer()
		if obj, exists, _ := informer.GetIndexer().GetByKey(a.GetNamespace() + "/" + a.GetName()); exists {
			_ = informer.GetIndexer().Delete(obj)
		}
		return true, nil, nil
	}
	return false, nil, nil
}

// keep stores an object as the API does: times lose what is below a second.
func (w *world) keep(object runtime.Object) runtime.Object {
	switch o := object.DeepCopyObject().(type) {
	case *v1alpha1.Release:
		text, err := json.Marshal(o)
		if err != nil {
			w.Fatal(err)
		}
		stored := &v1alpha1.Release{}
		if err := json.Unmarshal(text, stored); err != nil {
			w.Fatal(err)
		}
		w.add(w.ours.Delivery().V1alpha1().Releases().Informer(), stored)
		return stored.DeepCopy()
	case *manifold.PlacementPolicy:
		w.add(w.ours.Manifold().V1alpha1().PlacementPolicies().Informer(), o)
		return o.DeepCopy()
	}
	return object
}
