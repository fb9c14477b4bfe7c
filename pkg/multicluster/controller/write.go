package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/pkg/multicluster"
)

var everything = labels.Everything()

// read reads the object of our name, and reports whether there is one.
func (r *run) read(ctx context.Context, kind schema.GroupVersionResource, into any) (there bool, err error) {
	found, err := r.Dynamic.Resource(kind).Namespace(r.name.Namespace).Get(ctx, r.name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s: %w", kind.Resource, r.name, err)
	}
	return true, nil
}

func asMap(object any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}

// finalizers writes those of the export, which is as it was read.
func (r *run) finalizers(ctx context.Context, all []string) error {
	return r.patch(ctx, map[string]any{"finalizers": all})
}

// patch writes metadata of the export, which is as it was read.
func (r *run) patch(ctx context.Context, metadata map[string]any) error {
	metadata["resourceVersion"], metadata["uid"] = r.export.ResourceVersion, r.export.UID
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	stored, err := r.Dynamic.Resource(r.kind).Namespace(r.name.Namespace).Patch(ctx, r.name.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: multicluster.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.export.Finalizers, r.export.Annotations, r.export.ResourceVersion = stored.GetFinalizers(), stored.GetAnnotations(), stored.GetResourceVersion()
	return nil
}

// annotate has the Service carry these annotations of ours, and none that were ours. What somebody else says there stays.
func (r *run) annotate(ctx context.Context, service types.UID, annotations map[string]string) error {
	apply := applycorev1.Service(r.name.Name, r.name.Namespace).WithUID(service).WithAnnotations(annotations)
	_, err := r.Client.CoreV1().Services(r.name.Namespace).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: multicluster.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// imports is how the ServiceImports are served.
func (r *run) imports() (schema.GroupVersionResource, error) {
	kind, defined := r.Kinds.Resource(multicluster.ImportKind)
	if !defined {
		r.queue.AddAfter(r.name, tryAgain)
		return kind, fmt.Errorf("ServiceImports are not defined: define them as well, as by kubectl apply -k config/crds/mcs")
	}
	return kind, nil
}

// bringImport makes the ServiceImport what it should be, and returns it.
func (r *run) bringImport(ctx context.Context) (*mcs.ServiceImport, error) {
	kind, err := r.imports()
	if err != nil {
		return nil, err
	}
	r.export.SetGroupVersionKind(r.kind.GroupVersion().WithKind(mcs.ServiceExportKindName)) // as it is stored
	wanted := r.view.Import(r.export)
	wanted.APIVersion = kind.GroupVersion().String()
	client, live := r.Dynamic.Resource(kind).Namespace(r.name.Namespace), &mcs.ServiceImport{}
	there, err := r.read(ctx, kind, live)
	switch {
	case err != nil:
		return nil, err
	case there && !metav1.IsControlledBy(live, r.export):
		r.queue.AddAfter(r.name, tryAgain)
		return nil, fmt.Errorf("there is a ServiceImport %s that this export has not made: delete it, so that the one of the export can take its place", r.name.Name)
	case there && live.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the ServiceImport %s is being deleted", r.name.Name)
	case there && !multicluster.Merge(wanted, live):
		return live, nil
	case !there:
		live = wanted
	}
	content, err := asMap(live)
	if err != nil {
		return nil, err
	}
	var stored *unstructured.Unstructured
	if there {
		stored, err = client.Update(ctx, content, metav1.UpdateOptions{FieldManager: multicluster.FieldManager})
	} else {
		stored, err = client.Create(ctx, content, metav1.CreateOptions{FieldManager: multicluster.FieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("write ServiceImport %s: %w", r.name.Name, err)
	}
	out := &mcs.ServiceImport{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, out)
}

// deleteImport deletes the ServiceImport, if it is that of the export.
func (r *run) deleteImport(ctx context.Context) error {
	kind, defined := r.Kinds.Resource(multicluster.ImportKind)
	if !defined {
		return nil
	}
	live := &mcs.ServiceImport{}
	there, err := r.read(ctx, kind, live)
	if err != nil || !there || !metav1.IsControlledBy(live, r.export) {
		return err
	}
	err = r.Dynamic.Resource(kind).Namespace(r.name.Namespace).Delete(ctx, r.name.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ServiceImport %s: %w", r.name.Name, err)
	}
	return nil
}

// bringSlices makes the slices of the ServiceImport what they should be.
func (r *run) bringSlices(ctx context.Context, wanted []*discoveryv1.EndpointSlice) error {
	present, err := r.slices.EndpointSlices(r.name.Namespace).List(labels.SelectorFromSet(labels.Set{
		mcs.LabelServiceName: r.name.Name, discoveryv1.LabelManagedBy: multicluster.SlicesManager,
	}))
	if err != nil {
		return err
	}
	left := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range present {
		left[slice.Name] = slice
	}
	client := r.Client.DiscoveryV1().EndpointSlices(r.name.Namespace)
	for _, slice := range wanted {
		live := left[slice.Name]
		delete(left, slice.Name)
		switch {
		case live == nil:
			if other, _ := r.slices.EndpointSlices(r.name.Namespace).Get(slice.Name); other != nil {
				r.queue.AddAfter(r.name, tryAgain)
				return fmt.Errorf("there is an EndpointSlice %s that Manifold has not made: delete it, so that one of the export can take its place", slice.Name)
			}
			_, err = client.Create(ctx, slice, metav1.CreateOptions{FieldManager: multicluster.FieldManager})
		case equalSlices(slice, live):
			continue
		default:
			slice.ResourceVersion, slice.UID = live.ResourceVersion, live.UID
			_, err = client.Update(ctx, slice, metav1.UpdateOptions{FieldManager: multicluster.FieldManager})
		}
		if err != nil {
			return fmt.Errorf("write EndpointSlice %s: %w", slice.Name, err)
		}
	}
	for name, slice := range left {
		err := client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(slice.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete EndpointSlice %s: %w", name, err)
		}
	}
	return nil
}

func equalSlices(wanted, live *discoveryv1.EndpointSlice) bool {
	return maps.Equal(wanted.Labels, live.Labels) && equality.Semantic.DeepEqual(wanted.OwnerReferences, live.OwnerReferences) &&
		equality.Semantic.DeepEqual(wanted.Ports, live.Ports) && equality.Semantic.DeepEqual(wanted.Endpoints, live.Endpoints)
}

// tellImport writes the status of the ServiceImport, where it differs. One that goes to clusters has the status that these give.
func (r *run) tellImport(ctx context.Context, live *mcs.ServiceImport, slicesOfIt int) error {
	if r.goesBelow(multicluster.ImportKind, live) {
		return nil
	}
	next := r.view.ImportStatus(live.Generation, slicesOfIt)
	conditions := next.Conditions
	next.Conditions = live.DeepCopy().Status.Conditions
	r.set(&next.Conditions, conditions)
	if equality.Semantic.DeepEqual(live.Status, next) {
		return nil
	}
	kind, err := r.imports()
	if err != nil {
		return err
	}
	live.Status = next
	return r.updateStatus(ctx, kind, live)
}

// tell writes the conditions of the export, where they differ.
func (r *run) tell(ctx context.Context, conditions []metav1.Condition) error {
	next := r.export.DeepCopy()
	r.set(&next.Status.Conditions, conditions)
	if equality.Semantic.DeepEqual(r.export.Status, next.Status) {
		return nil
	}
	return r.updateStatus(ctx, r.kind, next)
}

func (r *run) set(all *[]metav1.Condition, conditions []metav1.Condition) {
	for _, condition := range conditions {
		condition.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		meta.SetStatusCondition(all, condition)
	}
}

func (r *run) updateStatus(ctx context.Context, kind schema.GroupVersionResource, object any) error {
	content, err := asMap(object)
	if err != nil {
		return err
	}
	_, err = r.Dynamic.Resource(kind).Namespace(r.name.Namespace).UpdateStatus(ctx, content, metav1.UpdateOptions{FieldManager: multicluster.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the status of %s %s: %w", kind.Resource, r.name, err)
	}
	return nil
}
