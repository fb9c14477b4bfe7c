package custom

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// client reaches the objects of the watched kind in a namespace of the cluster.
func (w *watch) client(l *loop, key Key) dynamic.ResourceInterface {
	return l.client.Resource(key.Resource.WithVersion(w.version)).Namespace(key.Namespace)
}

// act carries out one step of a plan, and returns what the cluster made of the object if it was written.
func (l *loop) act(ctx context.Context, kind projection.Kind, key Key, w *watch, action projection.Action, desired, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	client := w.client(l, key)
	switch action.Step {
	case projection.Create:
		return l.create(ctx, client, kind, desired)
	case projection.Apply:
		return l.apply(ctx, client, desired, live)
	case projection.Replace:
		return nil, l.delete(ctx, client, live)
	case projection.Conflict:
		return nil, &conflictError{action.Reason}
	case projection.Nothing, projection.Wait:
		return nil, nil
	}
	return nil, fmt.Errorf("unknown step %q", action.Step)
}

// create makes the object. It is not an apply, which would silently take over what somebody else made under that name.
func (l *loop) create(ctx context.Context, client dynamic.ResourceInterface, kind projection.Kind, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	made, err := client.Create(ctx, desired, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	// Either the watch is behind, or the object is not ours, which our watch does not show.
	live, err := client.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errNotYet
	}
	if err != nil {
		return nil, err
	}
	if action := kind.Plan(desired, live); action.Step == projection.Conflict {
		return nil, &conflictError{action.Reason}
	}
	return nil, errNotYet
}

// apply makes the fields of the projection what they should be, and leaves those of others.
func (l *loop) apply(ctx context.Context, client dynamic.ResourceInterface, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := adoptFields(ctx, client, live); err != nil {
		return nil, err
	}
	next := desired.DeepCopy()
	next.SetUID(live.GetUID())
	return client.Apply(ctx, next.GetName(), next, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true})
}

// adoptFields turns the fields that we own by having created the object into applied ones, once: otherwise what we leave out later
// would stay.
func adoptFields(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	created := false
	for _, entry := range live.GetManagedFields() {
		created = created || entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	}
	if !created {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(v1alpha1.FieldManager), v1alpha1.FieldManager)
	if err != nil {
		return fmt.Errorf("take over the fields that we created: %w", err)
	}
	if len(patch) == 0 {
		return nil
	}
	_, err = client.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// delete removes an object of ours, and no other that may have taken its name.
func (l *loop) delete(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	err := client.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		Preconditions:     metav1.NewUIDPreconditions(string(live.GetUID())),
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// orphan takes our marks off an object, which is nobody's business of ours from then on.
func (l *loop) orphan(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	annotations := map[string]any{}
	for _, key := range []string{
		v1alpha1.AnnotationNamespace, v1alpha1.AnnotationName, v1alpha1.AnnotationUID, v1alpha1.AnnotationProjection,
	} {
		annotations[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "labels": map[string]any{v1alpha1.LabelLogicalCluster: nil}, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
