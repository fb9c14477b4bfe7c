package holding

import (
	"slices"

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
// not lead to yet: as the logical cluster has it, which is what other clusters go by, or as this cluster has it, which is what its kube-proxies go by. A
// Service that leads nowhere at all is of no use to anybody now, so nobody waits for it. The cluster that asks, unless that is "", is woken when there may
// be fewer.
func (h *Holder) Unrouted(w identity.Workload, available int32, asks string) int32 {
	live := h.Below.Get(w.Key())
	if available == 0 || !trust.Ours(live, w) {
		return 0
	}
	kind, _ := projection.ForResource(identity.Services)
	leading := slices.DeleteFunc(h.Above.ObjectsIn(identity.Services, w.GetNamespace()), func(service projection.Object) bool {
		return !kind.Selects(service, w.Kind, w.Object)
	})
	count := func() (n int32) {
		pods := h.ready(w, live)
		lacking := sets.New[types.UID]()
		for _, service := range leading {
			name := cache.MetaObjectToName(service)
			reached := h.Services.Pods(name)
			if len(reached) == 0 {
				continue
			}
			n = max(0, available-int32(len(pods))) // their watch may be behind that of the workload
			lack(lacking, pods, reached, kind, service)
			if inside := h.Below.Get(identity.KeyOf(kind, service)); inside != nil {
				if reached, _, known := h.Inside.Leads(name); !known || h.Inside.Makes(name) {
					lack(lacking, pods, reached, kind, inside)
				}
			}
		}
		return n + int32(len(lacking))
	}
	if n := count(); n == 0 || asks == "" {
		return n
	}
	who := services.Waiter{Cluster: asks, Key: w.Key()}
	for _, service := range leading {
		h.Services.Await(cache.MetaObjectToName(service), who)
		h.Inside.Await(cache.MetaObjectToName(service), who)
	}
	return count() // what has changed before that has woken nobody
}

// ready returns the pods of a workload that serve in this cluster.
func (h *Holder) ready(w identity.Workload, live projection.Object) (out []*corev1.Pod) {
	for _, pod := range h.Below.PodsUnder(live, w.Key()) {
		if mirror.Ready(pod) && pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

// lack adds those pods that a Service selects and does not reach.
func lack(lacking sets.Set[types.UID], pods []*corev1.Pod, reached sets.Set[types.UID], kind projection.Kind, service projection.Object) {
	for _, pod := range pods {
		if !reached.Has(pod.UID) && selects(kind, service, pod) {
			lacking.Insert(pod.UID)
		}
	}
}

// selects reports whether a Service selects a pod, which may be of an earlier template than that of its workload.
func selects(kind projection.Kind, service projection.Object, pod *corev1.Pod) bool {
	pods, _ := projection.ForResource(identity.Pods)
	return kind.Selects(service, pods, pod)
}
