// Package capacity counts what a cluster has and what its pods ask for.
//
// Everything is a function of values, except Usage, which is a set of counters that a pod watch keeps current.
package capacity

import (
	"maps"
	"slices"
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
	levels   map[int32]*amounts  // the sums by priority
	shown    corev1.ResourceList // the sums as Snapshot returned them; nil once they have changed
}

type podUsage struct {
	amounts
	priority int32
	watch    uint32 // the last watch that has seen the pod
}

// Level is what the pods of one priority request together.
type Level struct {
	Priority int32
	Requests corev1.ResourceList
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
	return &Usage{pods: map[types.NamespacedName]podUsage{}, levels: map[int32]*amounts{}, onChange: onChange}
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

// PodChanged tells what a pod requests, and with which priority. A pod that is not counted, because it has ended, requests nothing. Use
// PodRequests for requests and counted.
func (u *Usage) PodChanged(key types.NamespacedName, requests corev1.ResourceList, priority int32, counted bool) {
	if !counted {
		u.PodGone(key)
		return
	}
	next := podUsage{amounts: amountsOf(requests), priority: priority}
	u.mu.Lock()
	next.watch = u.watch
	last, known := u.pods[key]
	same := known && last.priority == next.priority && last.equal(next.amounts)
	if known && !same {
		u.count(last, -1)
	}
	if !same {
		u.count(next, 1)
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

// Levels returns the sums by priority, the lowest first.
func (u *Usage) Levels() []Level {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Level, 0, len(u.levels))
	for _, priority := range slices.Sorted(maps.Keys(u.levels)) {
		out = append(out, Level{Priority: priority, Requests: u.levels[priority].list()})
	}
	return out
}

// Current reports whether the watch begun last is synced.
func (u *Usage) Current() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// drop takes a known pod out of the sums. The caller holds the lock.
func (u *Usage) drop(key types.NamespacedName, pod podUsage) {
	u.count(pod, -1)
	delete(u.pods, key)
}

// count adds to the sums, or takes off. The caller holds the lock.
func (u *Usage) count(pod podUsage, sign int64) {
	u.sums.add(pod.amounts, sign)
	level := u.levels[pod.priority]
	if level == nil {
		level = &amounts{}
		u.levels[pod.priority] = level
	}
	if level.add(pod.amounts, sign); level.pods == 0 {
		delete(u.levels, pod.priority)
	}
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
