// Package capacity counts what a cluster has and what its pods ask for.
//
// Everything is a function of values, except Usage, which is a set of counters that a pod watch keeps current.
package capacity

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Usage sums up what the pods of one cluster request. Every pod event costs the same, however many pods there are, and a pod is
// kept only as its requests, since the whole pods would be the bulk of the memory of a large fleet. It is safe for concurrent use.
//
// The owner of the cluster's pod watch feeds it: PodChanged for every add and update, PodGone for every delete, and Synced once
// the first list has been delivered. Begin starts a new watch over the old sums: they stay as they are until Synced drops the
// pods that the new watch has not seen, so that a restart of the watch does not look like an empty cluster.
type Usage struct {
	mu       sync.Mutex
	pods     map[types.NamespacedName]podUsage
	sums     amounts
	watch    uint32 // counts the watches begun
	current  bool   // the watch begun last has delivered its first list
	complete bool   // some watch has
	onChange func(synced bool)
	shown    corev1.ResourceList // the sums as Snapshot returned them; nil once they have changed
}

type podUsage struct {
	amounts
	watch uint32 // the last watch that has seen the pod
}

// amounts are quantities by resource: cpu in thousandths, all others in whole units. The three that every pod has are fields,
// because a map for every pod would take several times the memory of the numbers.
type amounts struct {
	milliCPU, memory, pods int64
	other                  map[corev1.ResourceName]int64
}

// NewUsage returns an empty Usage. onChange, which may be nil, is called after every change of a sum, and with synced true after
// Synced. It is called from the goroutine that caused the change and must return at once.
func NewUsage(onChange func(synced bool)) *Usage {
	return &Usage{pods: map[types.NamespacedName]podUsage{}, onChange: onChange}
}

// Begin tells that a new pod watch starts, which will list every pod again.
func (u *Usage) Begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watch++
	u.current = false
}

// Synced tells that the current watch has delivered its first list. Pods that it did not contain are dropped.
func (u *Usage) Synced() {
	u.mu.Lock()
	for key, pod := range u.pods {
		if pod.watch != u.watch {
			u.drop(key, pod)
		}
	}
	u.current, u.complete = true, true
	u.mu.Unlock()
	u.changed(true)
}

// PodChanged tells what a pod requests. A pod that is not counted, because it has ended, requests nothing. Use PodRequests for
// the two last arguments.
func (u *Usage) PodChanged(key types.NamespacedName, requests corev1.ResourceList, counted bool) {
	if !counted {
		u.PodGone(key)
		return
	}
	next := podUsage{amounts: amountsOf(requests)}
	u.mu.Lock()
	next.watch = u.watch
	last, known := u.pods[key]
	same := known && last.equal(next.amounts)
	if known && !same {
		u.count(last.amounts, -1)
	}
	if !same {
		u.count(next.amounts, 1)
	}
	u.pods[key] = next
	u.mu.Unlock()
	if !same {
		u.changed(false)
	}
}

// PodGone tells that a pod is no more. A pod that is not known is no error.
func (u *Usage) PodGone(key types.NamespacedName) {
	u.mu.Lock()
	last, known := u.pods[key]
	if known {
		u.drop(key, last)
	}
	u.mu.Unlock()
	if known {
		u.changed(false)
	}
}

// Snapshot returns the sums, and whether they are complete: false until the first watch is synced. It returns the same map until a sum
// changes, which callers must not change.
func (u *Usage) Snapshot() (sums corev1.ResourceList, complete bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shown == nil {
		u.shown = u.sums.list()
	}
	return u.shown, u.complete
}

// Current tells whether the watch begun last is synced.
func (u *Usage) Current() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// drop takes a known pod out of the sums. The caller holds the lock.
func (u *Usage) drop(key types.NamespacedName, pod podUsage) {
	u.count(pod.amounts, -1)
	delete(u.pods, key)
}

// count adds to the sums, or takes off. The caller holds the lock.
func (u *Usage) count(a amounts, sign int64) {
	u.sums.add(a, sign)
	u.shown = nil
}

func (u *Usage) changed(synced bool) {
	if u.onChange != nil {
		u.onChange(synced)
	}
}

// PodRequests returns what a pod requests from its cluster, and whether it counts at all: a pod that has succeeded or failed does
// not. The sums are the scheduler's: the larger of containers and init containers, overhead, and what a resize has been granted.
func PodRequests(pod *corev1.Pod) (requests corev1.ResourceList, counted bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, false
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}), true
}
