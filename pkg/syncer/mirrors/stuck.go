package mirrors

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// reasonEnded is the reason of the event about a pod that is ended for its controller, which would wait.
const reasonEnded = "PodEnded"

// End ends pods of a workload that their controller in the cluster does not get to, since it waits for others to be ready.
func (p *Pods) End(ctx context.Context, above projection.Object, stuck []*corev1.Pod) error {
	for _, pod := range stuck {
		if err := p.deleteBelow(ctx, pod); err != nil {
			return fmt.Errorf("end pod %s, which its controller does not get to: %w", pod.Name, err)
		}
		p.Recorder.Eventf(above, corev1.EventTypeNormal, reasonEnded,
			"cluster %q: pod %s is ended, as it is to run elsewhere and its controller waits for pods to be ready", p.Cluster, pod.Name)
	}
	return nil
}
