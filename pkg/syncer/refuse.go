package syncer

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// reasonRefused is the reason of the event that tells what of a cluster is not shown.
const reasonRefused = "NotShown"

// refuse is for a pod that cannot be shown. The caches may be behind for a moment, and what is decided may change, so it is looked at again;
// what goes on is told once.
func (s *Syncer) refuse(pod *corev1.Pod, why error) error {
	if s.podQueue.NumRequeues(cache.MetaObjectToName(pod)) == writer.BrokenTries {
		s.tellRefused(pod, why)
	}
	return errNotYet
}

// tellRefused tells of a pod that is not shown, and of the workload above that it claims to belong to.
func (s *Syncer) tellRefused(pod *corev1.Pod, why error) {
	var to projection.Object
	if own := s.ownerOf(pod); own != nil {
		to = own.above.Object
	}
	s.tellNotShown("pod", pod, to, why)
}

// tellNotShown writes an event about what is not shown: to a workload above if there is one, else to the cluster. The recorder bounds how many
// there are of one object.
func (s *Syncer) tellNotShown(what string, live metav1.Object, to projection.Object, why error) {
	var about runtime.Object = &corev1.ObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Cluster", Name: s.cluster}
	if to != nil {
		about = to
	}
	s.Recorder.Eventf(about, corev1.EventTypeWarning, reasonRefused, "cluster %q has %s %.253q in namespace %.63q, which is not shown: %v",
		s.cluster, what, live.GetName(), live.GetNamespace(), why)
}
