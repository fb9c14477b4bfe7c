package holding

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Unrouted counts the replicas of a workload that serve in this cluster, so many as it says, and that some Service which selects them does
// not lead to yet. A Service that leads nowhere at all is of no use to anybody now, so nobody waits for it. The cluster that asks, unless that is "",
// is woken when there may be fewer.
func (h *Holder) Unrouted(w identity.Workload, available int32, asks string) int32 {
	live := h.Below.Get(w.Key())
	if available == 0 || !trust.Ours(live, w) {
		return 0
	}
	kind, _ := projection.ForResource(identity.Services)
	var leading []projection.Object
	for _, service := range h.Above.ObjectsIn(identity.Services, w.GetNamespace()) {
		if kind.Selects(service, w.Kind, w.Object) {
			leading = append(leading, service)
		}
	}
	count := func() (n int32) {
		var pods []*corev1.Pod
		for _, pod := range h.Below.PodsUnder(live, w.Key()) {
			if mirror.Ready(pod) && pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
		lacking := sets.New[types.UID]()
		for _, service := range leading {
			reached := h.Services.Pods(cache.MetaObjectToName(service))
			if len(reached) == 0 {
				continue
			}
			n = max(0, available-int32(len(pods))) // their watch may be behind that of the workload
			for _, pod := range pods {
				if !reached.Has(pod.UID) && selects(kind, service, pod) {
					lacking.Insert(pod.UID)
				}
			}
		}
		return n + int32(len(lacking))
	}
	if n := count(); n == 0 || asks == "" {
		return n
	}
	for _, service := range leading {
		h.Services.Await(cache.MetaObjectToName(service), services.Waiter{Cluster: asks, Key: w.Key()})
	}
	return count() // what has changed before that has woken nobody
}

// selects reports whether a Service selects a pod, which may be of an earlier template than that of its workload.
func selects(kind projection.Kind, service projection.Object, pod *corev1.Pod) bool {
	pods, _ := projection.ForResource(identity.Pods)
	return kind.Selects(service, pods, pod)
}
