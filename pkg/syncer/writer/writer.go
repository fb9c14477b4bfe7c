// Package writer makes, changes and deletes single objects of a cluster, of built-in and custom kinds alike.
//
// What is not ours is left alone: an object is made by a POST, and changed or deleted by its UID. What an error means for the next try, and for
// users, is said here too.
package writer

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Writer brings objects of a kind, in one namespace of a cluster, to what they should be.
type Writer struct {
	Kind   projection.Kind
	Client Client
	// Yields reports whether an object that is not ours gives way to ours. It may be nil: then none does.
	Yields func(live projection.Object) bool
}

// Act carries out one step of a plan. It returns what the cluster made of the object, nil if a watch shows that.
func (w Writer) Act(ctx context.Context, action projection.Action, desired, live projection.Object) (projection.Object, error) {
	switch action.Step {
	case projection.Create:
		return w.create(ctx, desired)
	case projection.Apply:
		return w.apply(ctx, desired, live)
	case projection.Replace, projection.Delete:
		return nil, w.Delete(ctx, live, Deletion{})
	case projection.Conflict:
		if w.Yields != nil && w.Yields(live) {
			return w.apply(ctx, desired, live)
		}
		return nil, &ConflictError{action.Reason}
	case projection.Nothing, projection.Wait:
		return nil, nil
	}
	return nil, fmt.Errorf("unknown step %q", action.Step)
}

// create makes the object. It is not an apply, which would silently take over what somebody else made under that name.
func (w Writer) create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	made, err := w.Client.Create(ctx, desired)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	// Either the watch is behind, or the object is not ours, which our watch does not show.
	live, err := w.Client.Get(ctx, desired.GetName())
	if err != nil {
		return nil, err
	}
	action := w.Kind.Plan(desired, live)
	if action.Step == projection.Create {
		return nil, ErrNotYet
	}
	return w.Act(ctx, action, desired, live)
}

// apply brings an object of ours to the projection by server-side apply: what we no longer project goes, what others own stays. The
// UID keeps it from making a new object, or from changing another one of that name.
func (w Writer) apply(ctx context.Context, desired, live projection.Object) (projection.Object, error) {
	if err := w.adoptFields(ctx, live); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("encode the projection: %w", err)
	}
	delete(content, "status")
	metadata := content["metadata"].(map[string]any)
	metadata["uid"] = string(live.GetUID())
	delete(metadata, "creationTimestamp")
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the projection: %w", err)
	}
	return w.Client.Patch(ctx, desired.GetName(), types.ApplyPatchType, body)
}

// adoptFields turns the fields that we own by having created the object into applied ones, once: otherwise what we leave out later
// would stay. The caches keep of managed fields no more than whose they are, so the object is read.
func (w Writer) adoptFields(ctx context.Context, live projection.Object) error {
	created := false
	for _, entry := range live.GetManagedFields() {
		created = created || entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	}
	if !created {
		return nil
	}
	whole, err := w.Client.Get(ctx, live.GetName())
	if err != nil {
		return err
	}
	if whole == nil || whole.GetUID() != live.GetUID() {
		return ErrNotYet
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(whole, sets.New(v1alpha1.FieldManager), v1alpha1.FieldManager)
	if err != nil {
		return fmt.Errorf("take over the fields that we created: %w", err)
	}
	if len(patch) == 0 {
		return nil
	}
	_, err = w.Client.Patch(ctx, live.GetName(), types.JSONPatchType, patch)
	return err
}

// Deletion says how an object is deleted.
type Deletion struct {
	// Owned says what becomes of what the object owns; the zero value lets it go in the background.
	Owned metav1.DeletionPropagation
	// Grace is how many seconds the object has to end, nil for as many as it asks for itself.
	Grace *int64
	// Unchanged has the object deleted only as it was looked at.
	Unchanged bool
}

// Delete removes an object of ours, and no other that may have taken its name. One that is gone is no error.
func (w Writer) Delete(ctx context.Context, live projection.Object, how Deletion) error {
	preconditions := metav1.NewUIDPreconditions(string(live.GetUID()))
	if how.Unchanged {
		preconditions.ResourceVersion = ptr.To(live.GetResourceVersion())
	}
	return ignoreNotFound(w.Client.Delete(ctx, live, metav1.DeleteOptions{
		Preconditions:      preconditions,
		PropagationPolicy:  ptr.To(cmp.Or(how.Owned, metav1.DeletePropagationBackground)),
		GracePeriodSeconds: how.Grace,
	}))
}

// marks are the labels and annotations by which an object of a cluster is ours.
var marks = map[string]any{
	"labels": map[string]any{v1alpha1.LabelLogicalCluster: nil, v1alpha1.LabelOrphan: nil, v1alpha1.LabelPodWebhooks: nil},
	"annotations": map[string]any{
		v1alpha1.AnnotationNamespace: nil, v1alpha1.AnnotationName: nil, v1alpha1.AnnotationUID: nil,
		v1alpha1.AnnotationProjection: nil, v1alpha1.AnnotationTemplate: nil,
	},
}

// Orphan takes our marks off an object, which is nobody's business of ours from then on. One that is gone is no error.
func (w Writer) Orphan(ctx context.Context, live projection.Object) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "labels": marks["labels"], "annotations": marks["annotations"],
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = w.Client.Patch(ctx, live.GetName(), types.MergePatchType, patch)
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
