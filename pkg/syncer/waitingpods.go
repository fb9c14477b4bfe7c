package syncer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// A pod that a user made and that waits in a cluster without a node for it may be decided to run elsewhere. It must never run in both:
//
//  1. Its cluster deletes it exactly as it was looked at, without a node. If the scheduler is faster, nothing is deleted, the pod above
//     gets its node, and placement takes the decision back.
//  2. When it is gone, the syncer takes its UID off the pod above.
//  3. Only then the new cluster makes it: as long as the pod above has a UID below, it counts as made.

// concerns reports whether a pod that a user made is this cluster's to report.
func (s *Syncer) concerns(above *corev1.Pod) bool { return identity.Concerns(above, s.cluster) }

// leavesLater says why the cluster waits with a pod until it is gone from another one, "" if it does not.
func (s *Syncer) leavesLater(kind projection.Kind, above projection.Object) string {
	pod, ok := above.(*corev1.Pod)
	if !ok || kind.Mirror(pod) || pod.Spec.NodeName != "" {
		return ""
	}
	from := identity.PodIn(pod)
	if _, placed := identity.DecisionOf(pod)[s.cluster]; !placed || from == "" || from == s.cluster {
		return ""
	}
	return fmt.Sprintf("waits with the pod until it is gone from %q, which found no node for it", from)
}

// goesElsewhere reports whether an object below is a pod that a user made and that is to run in another cluster.
func (s *Syncer) goesElsewhere(kind projection.Kind, above, live projection.Object) bool {
	if kind.Resource != podResource || above == nil || live == nil || above.GetDeletionTimestamp() != nil || kind.Mirror(above) ||
		live.GetAnnotations()[v1alpha1.AnnotationUID] != string(above.GetUID()) {
		return false
	}
	decision := identity.DecisionOf(above)
	_, placed := decision[s.cluster]
	return !placed && len(decision) > 0 && s.concerns(above.(*corev1.Pod))
}

// leave has a pod that goes elsewhere leave the cluster, unless it has a node by now.
func (s *Syncer) leave(ctx context.Context, kind projection.Kind, above, live projection.Object) error {
	pod := live.(*corev1.Pod)
	switch {
	case pod.Spec.NodeName != "":
		s.podQueue.Add(cache.MetaObjectToName(pod)) // it runs here, which is reported
		return nil
	case pod.DeletionTimestamp != nil:
		return nil // the watch tells when it is gone
	}
	// Should it be decided to stay after all before its UID is taken off, it is none that somebody has deleted here.
	s.left.Store(above.GetUID(), struct{}{})
	err := s.writer(kind, live.GetNamespace()).Delete(ctx, live, writer.Deletion{Unchanged: true})
	if err != nil {
		s.left.Delete(above.GetUID())
	}
	return err
}

// hasLeft reports whether a pod that is not here any more, and that a user made, has left for another cluster. One that had a node has ended.
func (s *Syncer) hasLeft(above *corev1.Pod) bool {
	_, placed := identity.DecisionOf(above)[s.cluster]
	_, left := s.left.Load(above.UID)
	return above.DeletionTimestamp == nil && identity.PodIn(above) == s.cluster && above.Spec.NodeName == "" && (left || !placed)
}

// letGo takes off a pod above what this cluster told of it, so that another one makes it.
func (s *Syncer) letGo(ctx context.Context, above *corev1.Pod) error {
	out := above.DeepCopy()
	for _, key := range []string{v1alpha1.AnnotationPodUID, v1alpha1.AnnotationPodCluster} {
		delete(out.Annotations, key)
	}
	out.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: above.Status.QOSClass}
	written, err := s.above.CoreV1().Pods(out.Namespace).Update(ctx, out, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return err
	}
	s.mirrors.Mutation(written)
	s.left.Delete(above.UID)
	return nil
}
