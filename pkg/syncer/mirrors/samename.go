package mirrors

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// reasonRenamed is the reason of the event that tells why a pod was replaced.
const reasonRenamed = "PodNameTaken"

// makeAnew has a pod replaced whose name one of another cluster has. Controllers choose names by chance, of some 14 million for each
// workload: among ten thousand pods over several clusters two are alike more often than not, and only one of them could be seen. It is
// replaced as if somebody had deleted it, which what keeps no identity and counts no failures stands at any time. Everything else waits.
func (p *Pods) makeAnew(ctx context.Context, pod, shown *corev1.Pod) error {
	own := p.owners.Of(pod)
	if own == nil || pod.DeletionTimestamp != nil || mirror.Ended(pod) || !p.Lives(shown) {
		return ErrNotYet // either of them is on its way out
	}
	switch own.Above.Kind.Demand(own.Above.Object).Division {
	case placement.Divisible, placement.Everywhere:
	default:
		return ErrNotYet
	}
	if err := p.deleteBelow(ctx, pod); err != nil {
		return err
	}
	p.Recorder.Eventf(own.Above.Object, corev1.EventTypeNormal, reasonRenamed,
		"cluster %q makes pod %s anew, as a pod of cluster %q has that name", p.Cluster, pod.Name, identity.ShownFrom(shown))
	return ErrNotYet // until it is gone
}

// deleteBelow deletes a pod in the cluster, and no other one of its name. One that is gone is no error.
func (p *Pods) deleteBelow(ctx context.Context, pod *corev1.Pod) error {
	return typed.IgnoreGone(p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	}))
}
