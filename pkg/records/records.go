// Package records writes what Manifold keeps on objects of the logical cluster, of built-in and custom kinds alike: decisions, statuses with
// their breakdowns, and the finalizer that holds what clusters have. It remembers what users have been told of them.
package records

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
)

// Change is a change of an object's metadata.
type Change struct {
	// Annotations are set. An empty one is taken off.
	Annotations map[string]string
	// Hold adds our finalizer, and Release takes it off.
	Hold, Release bool
	// Owner is added to the owners.
	Owner *metav1.OwnerReference
	// Anyhow makes the change whatever else has changed of the object. Otherwise that is a conflict: what it was made for may be no more.
	// The finalizers and owners of others are as they were looked at, so these cannot be changed anyhow.
	Anyhow bool
	// Strategic is for built-in kinds, and for annotations alone. Of the two kinds of patches that merge, the server carries out this one
	// without writing the object as text and reading it again.
	Strategic bool
}

// Write makes a change of the very object that is meant. It returns what is stored then, nil if the object is gone.
func Write(ctx context.Context, client typed.Client, of metav1.Object, change Change) (typed.Object, error) {
	metadata := map[string]any{"uid": of.GetUID()}
	if !change.Anyhow {
		metadata["resourceVersion"] = of.GetResourceVersion()
	}
	if len(change.Annotations) > 0 {
		annotations := map[string]any{}
		for key, value := range change.Annotations {
			annotations[key] = value
			if value == "" {
				annotations[key] = nil
			}
		}
		metadata["annotations"] = annotations
	}
	switch {
	case change.Hold && !Held(of):
		metadata["finalizers"] = append(slices.Clone(of.GetFinalizers()), v1alpha1.FinalizerProjection)
	case change.Release && Held(of):
		metadata["finalizers"] = slices.DeleteFunc(slices.Clone(of.GetFinalizers()), func(f string) bool { return f == v1alpha1.FinalizerProjection })
	}
	if change.Owner != nil {
		metadata["ownerReferences"] = append(slices.Clone(of.GetOwnerReferences()), *change.Owner)
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	by := types.MergePatchType
	if change.Strategic {
		by = types.StrategicMergePatchType
	}
	return unlessGone(client.Patch(ctx, of.GetName(), by, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}))
}

// Held reports whether our finalizer holds an object.
func Held(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerProjection)
}

// Status stores a status, with the annotations that belong to it where the kind lets these go along. It returns what is stored then, nil if
// the object is gone.
func Status(ctx context.Context, client typed.Client, next typed.Object) (typed.Object, error) {
	return unlessGone(client.UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}))
}

func unlessGone(stored typed.Object, err error) (typed.Object, error) {
	if err == nil {
		return stored, nil
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return nil, err
}
