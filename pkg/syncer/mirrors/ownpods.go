package mirrors

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// syncOwn does for a pod that a user made, and that runs in this cluster, what a kubelet does for its API server: it reports the
// status, and lets go of the pod once it has ended.
func (p *Pods) syncOwn(ctx context.Context, above, live *corev1.Pod) error {
	if !identity.Concerns(above, p.Cluster) {
		return nil
	}
	if live == nil || live.Annotations[v1alpha1.AnnotationUID] != string(above.UID) {
		if p.hasLeft(above) {
			return p.letGo(ctx, above)
		}
		// What is still to be made is no pod that has ended. What is there instead, a stranger's of that name, has nothing to do with it.
		if above.DeletionTimestamp != nil || above.Annotations[v1alpha1.AnnotationPodUID] != "" {
			return p.end(ctx, above, 0)
		}
		return nil
	}
	if live.Spec.NodeName != "" {
		p.Stay(above.UID)
	} else if _, placed := identity.DecisionOf(above)[p.Cluster]; !placed && above.DeletionTimestamp == nil {
		return nil // it is about to leave
	}
	have, err := p.report(ctx, above, live)
	if err != nil {
		return err
	}
	if live.DeletionTimestamp != nil && have.DeletionTimestamp == nil {
		// Somebody deletes it in the cluster: it ends above as well.
		return p.end(ctx, have, max(ptr.Deref(live.DeletionGracePeriodSeconds, 0), 1))
	}
	return p.spare(ctx, have, live)
}

// spare gives a pod that a controller below has taken over its namespace for a second owner, as long as it has any above that is known there
// alone: so the garbage collector of the cluster lets it live when the controller goes, and the one above decides. What is mirrored gets that
// with the change itself; see storage.ownersBelow.
func (p *Pods) spare(ctx context.Context, above, live *corev1.Pod) error {
	if live.DeletionTimestamp != nil || metav1.GetControllerOf(live) == nil {
		return nil
	}
	spared := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.Name == live.Namespace })
	wanted := slices.ContainsFunc(above.OwnerReferences, func(r metav1.OwnerReference) bool { return !projection.ControlsPods(r) })
	if spared == wanted {
		return nil
	}
	namespace, err := p.Client.CoreV1().Namespaces().Get(ctx, live.Namespace, metav1.GetOptions{})
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
	_, err = p.Client.CoreV1().Pods(live.Namespace).Patch(ctx, live.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return typed.IgnoreGone(err)
}

// report writes what the cluster says of a pod, if it is something new, and returns the pod as it is above then.
func (p *Pods) report(ctx context.Context, above, live *corev1.Pod) (*corev1.Pod, error) {
	observed := above.Status.ObservedGeneration
	generation, projected := p.Projected(identity.Key{Resource: identity.Pods, Namespace: above.Namespace, Name: above.Name}, above.UID)
	if projected && live.Status.ObservedGeneration >= live.Generation {
		observed = generation // the pod there is what the one above asks for
	}
	want := mirror.Report(above, live, p.Cluster, p.owners.OfOwn(above, live), observed)
	p.unheard(want, above)
	if equality.Semantic.DeepEqual(want, above) {
		return above, nil
	}
	p.tellAddresses(live, above)
	return p.update(ctx, want)
}

// Leave takes down that a pod of a user is deleted here because it is to run elsewhere: should it be decided to stay after all before its UID
// is taken off, it is none that somebody has deleted here.
func (p *Pods) Leave(above types.UID) { p.left.Store(above, struct{}{}) }

// Stay is for a pod that does not leave, or has got a node.
func (p *Pods) Stay(above types.UID) { p.left.Delete(above) }

// hasLeft reports whether a pod that is not here any more, and that a user made, has left for another cluster. One that had a node has ended.
func (p *Pods) hasLeft(above *corev1.Pod) bool {
	_, placed := identity.DecisionOf(above)[p.Cluster]
	_, left := p.left.Load(above.UID)
	return above.DeletionTimestamp == nil && identity.PodIn(above) == p.Cluster && above.Spec.NodeName == "" && (left || !placed)
}

// letGo takes off a pod above what this cluster told of it, so that another one makes it.
func (p *Pods) letGo(ctx context.Context, above *corev1.Pod) error {
	out := above.DeepCopy()
	for _, key := range []string{v1alpha1.AnnotationPodUID, v1alpha1.AnnotationPodCluster} {
		delete(out.Annotations, key)
	}
	out.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: above.Status.QOSClass}
	if _, err := p.update(ctx, out); err != nil {
		return err
	}
	p.Stay(above.UID)
	return nil
}
