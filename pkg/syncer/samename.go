package syncer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// reasonRenamed is the reason of the event that tells why a pod was replaced.
const reasonRenamed = "PodNameTaken"

// makeAnew has a pod replaced whose name one of another cluster has. Controllers choose names by chance, of some 14 million for each
// workload: among ten thousand pods over several clusters two are alike more often than not, and only one of them could be seen. It is
// replaced as if somebody had deleted it, which what keeps no identity and counts no failures stands at any time. Everything else waits.
func (s *Syncer) makeAnew(ctx context.Context, pod, shown *corev1.Pod) error {
	own := s.ownerOf(pod)
	if own == nil || pod.DeletionTimestamp != nil || mirror.Ended(pod) || !s.livesElsewhere(shown) {
		return errNotYet // either of them is on its way out
	}
	switch own.above.Kind.Demand(own.above.Object).Division {
	case placement.Divisible, placement.Everywhere:
	default:
		return errNotYet
	}
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err := ignoreGone(err); err != nil {
		return err
	}
	s.Recorder.Eventf(own.above.Object, corev1.EventTypeNormal, reasonRenamed,
		"cluster %q makes pod %s anew, as a pod of cluster %q has that name", s.cluster, pod.Name, identity.ShownFrom(shown))
	return errNotYet // until it is gone
}

// livesElsewhere reports whether the pod that a mirror shows is there.
func (s *Syncer) livesElsewhere(mirror *corev1.Pod) bool {
	other, running := s.Upstream.Syncer(identity.ShownFrom(mirror))
	if !running || mirror.DeletionTimestamp != nil {
		return false
	}
	pod := other.below.Pod(cache.MetaObjectToName(mirror))
	return pod != nil && pod.UID == mirror.UID && pod.DeletionTimestamp == nil
}
