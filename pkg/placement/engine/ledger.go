package engine

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// expectation is how long a decision counts that was made on the way to storage and that no watch has shown: the write may have failed,
// or have been a dry run.
const expectation = 10 * time.Second

// ledger keeps what decisions put on each cluster, and how much of that the cluster's pods do not show yet. Every change of a workload
// costs the same, however many there are.
type ledger struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[Ref]*entry
	// loads and byNamespace are sums over entries, the latter what neighbours weigh by the number of the cluster.
	loads       loads
	byNamespace map[string]map[int32]int64
	// expected are the entries that no watch has confirmed, the oldest first.
	expected []expected
	// version counts entries, so that none has that of another, also of one that was forgotten.
	version uint64
}

// entry is one workload.
type entry struct {
	requests placement.Resources
	shares   []replicas
	group    string // API group of the kind
	custom   bool
	labels   map[string]string
	class    string // PriorityClass of its pods
	// steps tells that replicas leave a cluster step by step, so that more may be there than are to be.
	steps  bool
	pinned bool // by itself, not by its namespace
	// apart tells that others need not be where the workload is: it is everywhere.
	apart bool
	// running is how many replicas clusters report.
	running []replicas
	// version tells an expected entry from what replaced it.
	version uint64
	// expected tells that no watch has shown the entry. Then shown is what one has shown last, nil for nothing.
	expected bool
	shown    *entry
}

type expected struct {
	ref     Ref
	version uint64
	until   time.Time
}

func newLedger(c clock.PassiveClock) *ledger {
	return &ledger{
		clock:       c,
		entries:     map[Ref]*entry{},
		loads:       loads{numbers: map[string]int32{}},
		byNamespace: map[string]map[int32]int64{},
	}
}

// handler keeps the entries of one kind, and tells whoever wants to know which have changed.
func (l *ledger) handler(kind projection.Kind, changed func(Ref)) cache.ResourceEventHandler {
	set := func(obj any) {
		o := obj.(projection.Object)
		k := Ref{kind.ListedAs(), o.GetNamespace(), o.GetName()}
		defer changed(k)
		if kind.Mirror(o) {
			l.forget(k) // it may have been a workload before a controller took it over
			return
		}
		decision, demand := identity.WholeDecisionOf(o), kind.Demand(o)
		if len(decision) == 0 || demand.Finished {
			l.forget(k)
			return
		}
		_, pinned := o.GetAnnotations()[v1alpha1.AnnotationClusters]
		l.set(k, entry{
			requests: demand.Requests(), apart: demand.Division == placement.Everywhere,
			group: kind.GVK.Group, custom: kind.Custom, labels: o.GetLabels(), class: demand.Template.Spec.PriorityClassName,
			steps:  demand.Division == placement.Divisible || demand.Ordinals,
			pinned: pinned,
		}, decision, running(kind, o, decision, demand))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			before, after := old.(projection.Object), obj.(projection.Object)
			was, is := before.GetAnnotations(), after.GetAnnotations()
			if before.GetGeneration() != after.GetGeneration() || progressed(kind.Demand(before), kind.Demand(after)) ||
				was[v1alpha1.AnnotationPlacement] != is[v1alpha1.AnnotationPlacement] ||
				was[v1alpha1.AnnotationClusters] != is[v1alpha1.AnnotationClusters] ||
				was[v1alpha1.AnnotationStatus] != is[v1alpha1.AnnotationStatus] || kind.Mirror(before) != kind.Mirror(after) ||
				!maps.Equal(before.GetLabels(), after.GetLabels()) {
				set(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				l.forget(Ref{kind.ListedAs(), name.Namespace, name.Name})
				changed(Ref{kind.ListedAs(), name.Namespace, name.Name})
			}
		},
	}
}

// progressed reports whether a workload has come to run, or has ended, since.
func progressed(before, after projection.Demand) bool {
	return before.Arrived != after.Arrived || before.Finished != after.Finished
}

// running reads how many pods of a workload each cluster has: from the breakdown, or for a kind without one by how many have arrived. One of a
// Job that has ended may have another in its place, which is coming too shortly to be counted.
func running(kind projection.Kind, o projection.Object, decision placement.Decision, demand projection.Demand) map[string]int32 {
	if kind.Custom {
		return runningCustom(kind, o, decision, demand.Arrived)
	}
	if arrived := demand.Arrived; arrived > 0 {
		out := make(map[string]int32, len(decision))
		for cluster := range decision {
			out[cluster] = arrived
		}
		return out
	}
	breakdown := identity.BreakdownOf(o)
	out := make(map[string]int32, len(breakdown))
	for cluster, status := range breakdown {
		out[cluster] = status.Replicas + status.Succeeded + status.Failed
	}
	return out
}

// runningCustom is running for a custom object: by the status of each copy, of which an only one is the object's own. Where nobody knows what says
// so, all replicas of a copy count once it is there.
func runningCustom(kind projection.Kind, o projection.Object, decision placement.Decision, arrived int32) map[string]int32 {
	out := map[string]int32{}
	for cluster, copied := range identity.CopiesOf(o) {
		share, decided := decision[cluster]
		if !decided || copied.Generation == 0 {
			continue
		}
		count, told := kind.Arrived(copied.Status)
		switch {
		case !told:
			count = share.Replicas
		case len(decision) == 1:
			count = arrived
		}
		out[cluster] = min(count, share.Replicas)
	}
	return out
}

// set records what a watch shows: a workload, its decision, and what of it runs in each cluster.
func (l *ledger) set(k Ref, e entry, decision placement.Decision, running map[string]int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.shares, e.running = l.loads.list(decision, l.entries[k]), l.loads.running(running)
	l.replace(k, &e)
}

func (l *ledger) forget(k Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replace(k, nil)
}

// expect records a decision before it is stored.
func (l *ledger) expect(w placement.Workload, decision placement.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	k := refOf(w)
	e := entry{requests: sumOf(w.Requests, w.ClaimRequests), shares: l.loads.list(decision, l.entries[k]), apart: w.Division == placement.Everywhere,
		expected: true, group: w.GVK.Group, custom: w.Custom, labels: w.Labels, pinned: w.Pin != nil,
		steps: w.Division == placement.Divisible || w.Ordinals}
	if w.Template != nil {
		e.class = w.Template.Spec.PriorityClassName
	}
	if before, known := l.entries[k]; known {
		e.running = before.running
		e.shown = before
		if before.expected {
			e.shown = before.shown // or two dry runs would leave the first behind
		}
	}
	version := l.replace(k, &e)
	l.expected = append(l.expected, expected{ref: k, version: version, until: l.clock.Now().Add(expectation)})
}

// forgetKind forgets all workloads of a kind.
func (l *ledger) forgetKind(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.entries {
		if k.Kind == kind {
			l.replace(k, nil)
		}
	}
}

// neighbours returns where the other workloads of a workload's namespace are.
func (l *ledger) neighbours(w placement.Workload) placement.Neighbours {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	weights := l.byNamespace[w.Namespace]
	out := make(placement.Neighbours, len(weights))
	for cluster, weight := range weights {
		out[l.loads.sums[cluster].cluster] = weight
	}
	if own, ok := l.entries[refOf(w)]; ok && !own.apart {
		out.Remove(l.loads.decision(own.shares))
	}
	return out
}

// others returns all workloads of built-in kinds, which affinity is about, or those of a namespace, without the labels of their namespaces.
func (l *ledger) others(namespace string, all bool) []placement.Other {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	var out []placement.Other
	for k, e := range l.entries {
		if !e.custom && (all || k.Namespace == namespace) {
			out = append(out, placement.Other{
				Kind: k.Kind, Group: e.group, Namespace: k.Namespace, Name: k.Name, Labels: e.labels, Clusters: l.loads.names(e.shares),
				Pinned: e.pinned,
			})
		}
	}
	return out
}

// number returns the number by which the ledger knows a cluster.
func (l *ledger) number(cluster string) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loads.number(cluster)
}

// refresh returns those clusters whose load has changed since they were refreshed last, with what it leaves of their room.
func (l *ledger) refresh(all []*seen) []placement.Cluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	stale := 0
	for _, s := range all {
		if s.version != l.loads.sums[s.number].version {
			stale++
		}
	}
	out := make([]placement.Cluster, 0, stale)
	for _, s := range all {
		version := l.loads.sums[s.number].version
		if s.version == version {
			continue
		}
		s.version = version
		load := l.loads.load(s.number)
		c := s.known
		c.Free, c.Withheld = s.room.Free(load), s.room.Withheld(load)
		out = append(out, c)
	}
	return out
}

// beyond returns how much more could be free in a cluster if nothing else were requested there.
func (l *ledger) beyond(cluster string, room placement.Room) placement.Resources {
	l.mu.Lock()
	defer l.mu.Unlock()
	return room.Beyond(l.load(cluster))
}

// classedEntry is a workload with its PriorityClass.
type classedEntry struct {
	Ref
	class    string
	requests placement.Resources
	decision placement.Decision
	running  map[string]int32
}

// classed returns all workloads that may make room for others. Of a custom one nobody knows whether it could.
func (l *ledger) classed() []classedEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	out := make([]classedEntry, 0, len(l.entries))
	for k, e := range l.entries {
		if e.custom {
			continue
		}
		next := classedEntry{k, e.class, e.requests, l.loads.decision(e.shares), nil}
		if e.steps {
			next.running = l.loads.counts(e.running)
		}
		out = append(out, next)
	}
	return out
}

// arrives reports whether a cluster does not run yet all that it is to run of a workload.
func (l *ledger) arrives(of Ref, cluster string, share int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[of]
	return e == nil && share > 0 || e != nil && l.loads.counts(e.running)[cluster] < share
}

// load returns what decisions put on a cluster. It goes on changing: the caller holds the lock and does not keep it.
func (l *ledger) load(cluster string) placement.Load { return l.loads.load(l.loads.number(cluster)) }

// expire takes back what was expected and did not come. The caller holds the lock.
func (l *ledger) expire() {
	now := l.clock.Now()
	for len(l.expected) > 0 && !l.expected[0].until.After(now) {
		x := l.expected[0]
		l.expected = l.expected[1:]
		if e := l.entries[x.ref]; e != nil && e.version == x.version {
			l.replace(x.ref, e.shown)
		}
	}
}

// replace puts an entry in the place of another, nil for none, and keeps the sums. The caller holds the lock.
func (l *ledger) replace(k Ref, next *entry) (version uint64) {
	last := l.entries[k]
	l.loads.replace(last, next)
	if last == nil || next == nil || last.apart != next.apart || !sameList(last.shares, next.shares) {
		l.weigh(k.Namespace, next, 1)
		l.weigh(k.Namespace, last, -1)
	}
	if next == nil {
		delete(l.entries, k)
		return 0
	}
	l.version++
	next.version = l.version
	l.entries[k] = next
	return next.version
}

// weigh adds an entry, nil for none, to what neighbours weigh in a namespace, or takes it off.
func (l *ledger) weigh(namespace string, e *entry, sign int64) {
	if e == nil || e.apart {
		return
	}
	weights := l.byNamespace[namespace]
	if weights == nil {
		weights = map[int32]int64{}
		l.byNamespace[namespace] = weights
	}
	for _, share := range e.shares {
		weight := weights[share.cluster] + sign*placement.WeightOf(share.count)
		if weights[share.cluster] = weight; weight == 0 {
			delete(weights, share.cluster)
		}
	}
	if len(weights) == 0 {
		delete(l.byNamespace, namespace)
	}
}

// sumOf are both amounts.
func sumOf(a, b placement.Resources) placement.Resources {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	out.Add(b, 1)
	return out
}
