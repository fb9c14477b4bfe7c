package syncer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// ended has a pod looked at whose projection is gone: above, it may wait for that.
func (s *Syncer) ended(key identity.Key, above projection.Object) {
	if key.Resource == podResource && above != nil {
		s.podQueue.Add(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
}

// syncOwnPod does for a pod that a user made, and that runs in this cluster, what a kubelet does for its API server: it reports the
// status, and lets go of the pod once it has ended.
func (s *Syncer) syncOwnPod(ctx context.Context, above, live *corev1.Pod) error {
	if !s.concerns(above) {
		return nil
	}
	if live == nil || live.Annotations[v1alpha1.AnnotationUID] != string(above.UID) {
		if s.hasLeft(above) {
			return s.letGo(ctx, above)
		}
		// What is still to be made is no pod that has ended. What is there instead, a stranger's of that name, has nothing to do with it.
		if above.DeletionTimestamp != nil || above.Annotations[v1alpha1.AnnotationPodUID] != "" {
			return s.deleteMirror(ctx, above, 0)
		}
		return nil
	}
	if live.Spec.NodeName != "" {
		s.left.Delete(above.UID)
	} else if _, placed := identity.DecisionOf(above)[s.cluster]; !placed && above.DeletionTimestamp == nil {
		return nil // it is about to leave
	}
	have, err := s.reportPod(ctx, above, live)
	if err != nil {
		return err
	}
	if live.DeletionTimestamp != nil && have.DeletionTimestamp == nil {
		// Somebody deletes it in the cluster: it ends above as well.
		return s.deleteMirror(ctx, have, max(ptr.Deref(live.DeletionGracePeriodSeconds, 0), 1))
	}
	return s.spare(ctx, have, live)
}

// spare gives a pod that a controller below has taken over its namespace for a second owner, as long as it has any above that is known there
// alone: so the garbage collector of the cluster lets it live when the controller goes, and the one above decides. What is mirrored gets that
// with the change itself; see storage.ownersBelow.
func (s *Syncer) spare(ctx context.Context, above, live *corev1.Pod) error {
	if live.DeletionTimestamp != nil || metav1.GetControllerOf(live) == nil {
		return nil
	}
	spared := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.Name == live.Namespace })
	wanted := slices.ContainsFunc(above.OwnerReferences, func(r metav1.OwnerReference) bool { return !projection.ControlsPods(r) })
	if spared == wanted {
		return nil
	}
	namespace, err := s.client.CoreV1().Namespaces().Get(ctx, live.Namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	owner := map[string]any{"uid": namespace.UID, "$patch": "delete"}
	if wanted {
		owner = map[string]any{"uid": namespace.UID, "apiVersion": "v1", "kind": "Namespace", "name": namespace.Name}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.UID, "ownerReferences": []any{owner}}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = s.client.CoreV1().Pods(live.Namespace).Patch(ctx, live.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// reportPod writes what the cluster says of a pod, if it is something new, and returns the pod as it is above then.
func (s *Syncer) reportPod(ctx context.Context, above, live *corev1.Pod) (*corev1.Pod, error) {
	want := s.reported(above, live)
	if equality.Semantic.DeepEqual(want, above) {
		return above, nil
	}
	written, err := s.above.CoreV1().Pods(want.Namespace).Update(ctx, want, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return nil, err
	}
	s.mirrors.Mutation(written)
	return written, nil
}

// reported is the pod above with what its cluster says of it. Generations are counted above: those of the cluster are put in their terms
// once the pod there is what the one above asks for.
func (s *Syncer) reported(above, live *corev1.Pod) *corev1.Pod {
	out := above.DeepCopy()
	live.Status.DeepCopyInto(&out.Status)
	observed := above.Status.ObservedGeneration
	if st := s.stateOf(identity.Key{Resource: podResource, Namespace: above.Namespace, Name: above.Name}); st.hash != "" && st.uid == above.UID {
		if live.Status.ObservedGeneration >= live.Generation {
			observed = st.generation
		}
	}
	out.Status.ObservedGeneration = observed
	for i := range out.Status.Conditions {
		if out.Status.Conditions[i].ObservedGeneration != 0 {
			out.Status.Conditions[i].ObservedGeneration = observed
		}
	}
	out.OwnerReferences = s.ownersOf(above, live)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationPodUID, string(live.UID))
	if live.Spec.NodeName != "" {
		delete(out.Annotations, v1alpha1.AnnotationPodCluster)
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationNode, live.Spec.NodeName)
		out.Spec.NodeName = s.cluster
	} else {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationPodCluster, s.cluster)
	}
	return out
}
