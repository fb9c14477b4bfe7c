package syncer

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/guard"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// newcomerWait is how long the controller of a pod that is about to be made is waited for: the cluster asks about the first pod of a controller at
// once when that has been made, which no watch may have shown yet.
const newcomerWait = 5 * time.Second

// asksAbove reports whether the cluster knows, for the namespace of a workload, whether it is to ask the logical cluster about pods there. It is
// told first: a pod that is made before that passes by the webhooks above.
func (s *Syncer) asksAbove(namespace string) bool {
	if projection.NamespaceShared(namespace) {
		return true
	}
	key := identity.Key{Resource: namespaceResource, Name: namespace}
	above, live := s.Upstream.Get(key), s.below.Get(key)
	if above == nil {
		return true
	}
	want := s.planner.PodWebhooks(above)
	if want == "" {
		return true
	}
	if live != nil && live.GetLabels()[v1alpha1.LabelPodWebhooks] == want {
		return true
	}
	s.enqueue(key)
	return false
}

// Newcomer is a pod that a controller in a cluster is about to make.
type Newcomer struct {
	// Shown is the pod as the logical cluster is about to show it: what webhooks above are asked about.
	Shown *corev1.Pod
	// Controller is the kind of its controller above.
	Controller schema.GroupVersionKind

	subject podhooks.Subject
	key     podhooks.Key
}

// Sealed returns what webhooks have changed of the pod in the form in which the pod carries it.
func (n *Newcomer) Sealed(change []byte) string { return n.key.Seal(n.subject, change) }

// NotPlacedError tells that a pod says to be of a workload that has no such pod in its cluster.
type NotPlacedError struct{ Reason error }

func (e *NotPlacedError) Error() string { return e.Reason.Error() }

// Newcomer returns how the logical cluster shows a pod that its cluster is about to make, under the name that it is to get. It is nil for one that
// is nobody's of the logical cluster, or was made there and admitted already. The error is a *NotPlacedError if nothing above has such a pod there;
// another one tells that nobody can say yet.
func (s *Syncer) Newcomer(ctx context.Context, pod *corev1.Pod) (*Newcomer, error) {
	if metav1.GetControllerOf(pod) == nil || !s.below.Ours(pod.Namespace) {
		return nil, nil
	}
	if !s.HasSynced() {
		return nil, guard.ErrNotSeen
	}
	var found *Newcomer
	var why error
	ctx, cancel := context.WithTimeout(ctx, newcomerWait)
	defer cancel()
	err := s.arrivals.Await(ctx, pod.Namespace, func() (settled bool) {
		found, settled, why = s.newcomer(pod)
		return settled
	})
	if why == nil && err != nil {
		why = err
	}
	return found, why
}

// newcomer is Newcomer for what the caches show now. It is settled if they will show nothing else.
func (s *Syncer) newcomer(pod *corev1.Pod) (found *Newcomer, settled bool, err error) {
	own := s.owners.Of(pod)
	if own == nil {
		if s.mayBeOurs(pod) {
			return nil, false, fmt.Errorf("the controller of the pod, %s, has not been seen yet", metav1.GetControllerOf(pod).Name)
		}
		return nil, true, nil
	}
	owner := s.owners.OfMirror(pod)
	if owner == nil || owner.Controller.Object == nil {
		return nil, false, fmt.Errorf("the logical cluster does not show ReplicaSet %s yet", metav1.GetControllerOf(pod).Name)
	}
	if err := s.Upstream.Guard(nil).MayHave(s.cluster, pod, owner.Controller, owner.Decider); err != nil {
		return nil, true, &NotPlacedError{err}
	}
	shown := mirror.ShowPod(pod, s.cluster, owner.References, owner.Labels)
	shown.Finalizers, shown.Status = slices.Clone(pod.Finalizers), corev1.PodStatus{}
	of := s.Upstream.OwnerOf(owner.Controller, owner.Decider, s.cluster, logical.RevisionLabel(shown), true)
	of.Pod(shown, nil)
	// A mirror shows whatever annotations a pod has. Webhooks act upon them, and what they do then counts above.
	shown.Annotations = of.Annotations(pod.Annotations, pod.Name)
	return &Newcomer{
		Shown: shown, Controller: owner.Controller.Kind.GVK,
		subject: logical.SubjectOf(s.cluster, pod, owner.Decider), key: s.Upstream.PodKey,
	}, true, nil
}

// mayBeOurs reports whether the controller of a pod may turn out to be of ours, though the caches do not show that: they do not show it at all, or
// not yet what it belongs to.
func (s *Syncer) mayBeOurs(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOf(pod)
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok || !kind.Workload {
		return false
	}
	if kind.Resource == replicaSetResource { // all of them are watched
		rs := s.below.ReplicaSet(pod.Namespace, ref.Name)
		if rs == nil || rs.UID != ref.UID {
			return true
		}
		_, marked := rs.Annotations[v1alpha1.AnnotationUID] // as its Deployment gives it
		return marked
	}
	key := identity.Key{Resource: kind.Resource, Namespace: pod.Namespace, Name: ref.Name}
	above, live := s.Upstream.Get(key), s.below.Get(key)
	return above != nil && identity.Involves(above, s.cluster) && (live == nil || live.GetUID() != ref.UID)
}
