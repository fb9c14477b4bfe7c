package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// The owners of a mirrored pod are of two sorts. The controller is what the clusters say it is: who takes it off has it taken off there,
// where the controller may take the pod back. All others are objects of the logical cluster, known there alone. As long as a pod has any of
// these, it has its namespace for an owner below: so the garbage collector there lets it live when its controller goes, and the one above
// decides.

// ownerChange is what an update of a pod does to its owners.
type ownerChange struct {
	removed, added []metav1.OwnerReference
	// wasHeld and held tell whether any of the owners is known above alone.
	wasHeld, held bool
}

func ownerChangeOf(old, want *api.Pod) ownerChange {
	missing := func(from, in []metav1.OwnerReference) []metav1.OwnerReference {
		var out []metav1.OwnerReference
		for _, ref := range from {
			if !slices.ContainsFunc(in, func(r metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(r, ref) }) {
				out = append(out, ref)
			}
		}
		return out
	}
	alone := func(refs []metav1.OwnerReference) bool {
		return slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return !projection.ControlsPods(r) })
	}
	return ownerChange{
		removed: missing(old.OwnerReferences, want.OwnerReferences), added: missing(want.OwnerReferences, old.OwnerReferences),
		wasHeld: alone(old.OwnerReferences), held: alone(want.OwnerReferences),
	}
}

func (c ownerChange) empty() bool { return len(c.removed)+len(c.added) == 0 }

// toStore is the part of the change that is for the logical cluster: the controller follows from below, unless it is the garbage collector
// above that takes it off, because it is going or gone.
func (c ownerChange) toStore(collected bool) ownerChange {
	out := c
	out.added = slices.DeleteFunc(slices.Clone(c.added), projection.ControlsPods)
	if !collected {
		out.removed = slices.DeleteFunc(slices.Clone(c.removed), projection.ControlsPods)
	}
	return out
}

// concernsCluster reports whether there is anything to change in the pod's cluster.
func (c ownerChange) concernsCluster(collected bool) bool {
	return c.held != c.wasHeld || slices.ContainsFunc(c.added, projection.ControlsPods) ||
		!collected && slices.ContainsFunc(c.removed, projection.ControlsPods)
}

// apply makes the change to a pod.
func (c ownerChange) apply(pod *api.Pod) {
	is := func(refs []metav1.OwnerReference) func(metav1.OwnerReference) bool {
		return func(ref metav1.OwnerReference) bool {
			return slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
		}
	}
	pod.OwnerReferences = append(slices.DeleteFunc(slices.Clone(pod.OwnerReferences), is(slices.Concat(c.removed, c.added))), c.added...)
}

// removal is an entry of a patch that takes a reference off.
type removal struct {
	Patch string    `json:"$patch"`
	UID   types.UID `json:"uid"`
}

// ownersBelow returns the entries of a patch that makes the change in a cluster.
func ownersBelow(ctx context.Context, connection *below.Connection, pod *api.Pod, change ownerChange, collected bool) ([]any, error) {
	var out []any
	for _, ref := range change.added {
		if projection.ControlsPods(ref) {
			below, err := controllerBelow(ctx, connection, pod, ref)
			if err != nil {
				return nil, err
			}
			out = append(out, below)
		}
	}
	// What the collector above takes off is on its way below as well.
	if !collected && slices.ContainsFunc(change.removed, projection.ControlsPods) {
		live, err := connection.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if ref := metav1.GetControllerOf(live); ref != nil && live.UID == pod.UID {
			out = append(out, removal{"delete", ref.UID})
		}
	}
	if change.held == change.wasHeld {
		return out, nil
	}
	namespace, err := connection.Client.CoreV1().Namespaces().Get(ctx, pod.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !change.held {
		return append(out, removal{"delete", namespace.UID}), nil
	}
	return append(out, metav1.OwnerReference{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace", Name: namespace.Name, UID: namespace.UID,
	}), nil
}

// controllerBelow returns the reference, in a cluster, to what carries out a workload of the logical cluster there. The error is that of one
// that the cluster has no part of.
func controllerBelow(ctx context.Context, connection *below.Connection, pod *api.Pod, ref metav1.OwnerReference) (metav1.OwnerReference, error) {
	kind, _ := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	client, err := typed.For(connection.Client, kind.Resource, pod.Namespace)
	if err != nil {
		return ref, err
	}
	found, err := client.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()})
	if err != nil {
		return ref, err
	}
	below := ref
	below.UID = ""
	_ = meta.EachListItem(found, func(item runtime.Object) error {
		live, err := meta.Accessor(item)
		if err == nil && live.GetName() == ref.Name && live.GetAnnotations()[v1alpha1.AnnotationUID] == string(ref.UID) {
			below.UID = live.GetUID()
		}
		return nil
	})
	if below.UID == "" {
		return ref, apierrors.NewInvalid(api.Kind("Pod"), pod.Name, field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "ownerReferences"), fmt.Sprintf("%s %s controls nothing in cluster %q, where the pod is",
				ref.Kind, ref.Name, clusterOf(pod)))})
	}
	return below, nil
}

// withMetadata adds changes of owner references to a patch of a pod, and finalizers that it takes off.
func withMetadata(patch []byte, uid types.UID, owners []any, finalizers []string) ([]byte, error) {
	if len(owners)+len(finalizers) == 0 {
		return patch, nil
	}
	var content map[string]any
	if err := json.Unmarshal(patch, &content); err != nil {
		return nil, err
	}
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"] = uid
	if len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}
	if len(finalizers) > 0 {
		metadata["$deleteFromPrimitiveList/finalizers"] = finalizers
	}
	content["metadata"] = metadata
	return json.Marshal(content)
}

// storeOwners writes owners that are known above alone to a mirror, and returns it.
func (r *podChangeREST) storeOwners(ctx context.Context, want *api.Pod, change ownerChange, options *metav1.UpdateOptions) (*api.Pod, error) {
	return r.storeMirror(ctx, want, change.apply, options)
}

// storeMirror changes a mirror as it is stored, and returns it. Who asks for it has been admitted.
func (r *podChangeREST) storeMirror(ctx context.Context, of *api.Pod, change func(*api.Pod), options *metav1.UpdateOptions) (*api.Pod, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		pod, ok := old.DeepCopyObject().(*api.Pod)
		if !ok || pod.UID != of.UID {
			return nil, apierrors.NewConflict(api.Resource("pods"), of.Name, fmt.Errorf("it is another pod by now"))
		}
		change(pod)
		return pod, nil
	})
	obj, _, err := r.patchStorage.Update(ctx, of.Name, info, nil, rest.ValidateAllObjectUpdateFunc, false, options)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*api.Pod)
	if !ok {
		return nil, fmt.Errorf("the stock endpoint of pods returned a %T", obj)
	}
	return pod, nil
}
