package planning

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// becomesReady is for how long a pod is waited for that is not ready: one that has been started anew mostly is by then, and as long as it is not another one
// of its set should not go.
const becomesReady = time.Minute

// Ending says how far the controller of a StatefulSet is with the pods that it is not asked for any more. It ends them in order, the last first. For one
// that is not ready it waits until those before it are, and for each until those are that stay (processCondemned and processReplica in
// k8s.io/kubernetes/pkg/controller/statefulset). On a single cluster nothing else waits for that. Here others are to run their ordinals, or do already where
// this cluster was lost to them, so pods are ended for the controller once those that it waits for have not been ready for some time. What the user asks for
// no more is left to it.
func (c *Planner) Ending(l Look) steps.Ending {
	w := l.Workload()
	set, ok := l.Live.(*appsv1.StatefulSet)
	if !ok || set.Status.ObservedGeneration != set.Generation || set.Status.Replicas <= ptr.Deref(set.Spec.Replicas, 1) || !trust.Ours(set, w) {
		return steps.Ending{}
	}
	out := steps.Ending{Goes: true}
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		out.Stuck = stuck(c.Below.PodsControlledBy(set, w.Kind.GVK.Kind), identity.OrdinalsIn(w.Kind, set), identity.OrdinalsIn(w.Kind, w.Object), c.Clock.Now())
	}
	return out
}

// stuck returns those of a StatefulSet's pods that are to be ended for its controller, which waits for others to be ready, the last first: of the ordinals that
// it is not asked for here, those that the workload has.
func stuck(pods []*corev1.Pod, asked, whole placement.Range, now time.Time) []*corev1.Pod {
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return ordinalOf(pod) < 0 })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinalOf(b), ordinalOf(a)) })
	var leaving []*corev1.Pod
	unready, waits := sets.New[*corev1.Pod](), false // waits for one that stays
	for _, pod := range pods {
		ready, stays := mirror.Ready(pod) && pod.Status.Phase == corev1.PodRunning, asked.Contains(ordinalOf(pod))
		if pod.DeletionTimestamp != nil || !ready && now.Sub(changed(pod)) < becomesReady {
			return nil // the controller goes on once it is gone, or ready
		}
		if !ready {
			unready.Insert(pod)
		}
		if stays {
			waits = waits || !ready
		} else {
			leaving = append(leaving, pod)
		}
	}
	if len(leaving) == 0 || !waits && (unready.Len() < 2 || !unready.Has(leaving[0])) {
		return nil
	}
	return slices.DeleteFunc(leaving, func(pod *corev1.Pod) bool {
		return !whole.Contains(ordinalOf(pod)) || !waits && !unready.Has(pod)
	})
}

// ordinalOf is the number of a pod, -1 if it has none.
func ordinalOf(pod *corev1.Pod) int32 {
	_, ordinal, numbered := projection.CutOrdinal(pod.Name)
	if !numbered {
		return -1
	}
	return ordinal
}

// changed is when a pod became ready last, or ceased to be.
func changed(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}
