// Package copies brings custom resources in line with the logical cluster: a cluster holds whole copies of them, and nobody here knows what
// they mean.
//
// A loop for each cluster watches there the kinds of which it is to have something, and brings each object in line. It writes, and tries again,
// as the syncer of built-in kinds does. Objects are read whole only when one is projected, and are never decoded into anything: what nobody here
// knows survives.
package copies

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
)

// Above is the logical cluster as the loops see it.
type Above interface {
	// Get returns a kind and the metadata of an object of it, which is nil if there is none. Known is false as long as that is not known.
	Get(key Key) (k Kind, o *metav1.PartialObjectMetadata, known bool)
	// Concerns returns what a cluster has or is to have, as far as the logical cluster tells.
	Concerns(cluster string) []Key
	// Changed is told that there is something new to report of an object, and whether nothing follows that it could be told with.
	Changed(key Key, urgent bool)
}

// Options say what loops work with.
type Options struct {
	Above    Above
	Clusters listers.ClusterLister
	// LogicalCluster returns the identity of the logical cluster.
	LogicalCluster func() string
	// Queues are the names of the queues.
	Queues work.Names
	// Client reads custom resources of the logical cluster.
	Client dynamic.Interface
	// Recorder writes the events that tell users what could not be projected.
	Recorder record.EventRecorder
	// EnsureNamespace sees to it that a cluster has a namespace before something is put into it.
	EnsureNamespace func(ctx context.Context, cluster, namespace string) error
	// Lacks returns what keeps a workload out of a cluster: classes, quotas, and what its pods name. A problem is for the user. What is on its way
	// has the loop look again when it is there, or the error asks for another try. It may be nil.
	Lacks func(ctx context.Context, cluster string, w identity.Workload, desired projection.Object) (problem string, waits bool, err error)
	// Holds returns what a cluster is to hold of an object whose application has it at a revision there. The error says why that is not known, and what
	// the cluster has stays meanwhile. It may be nil.
	Holds func(kind schema.GroupKind, above metav1.Object, cluster string) (held.Hold, error)
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Behind tells of the workloads that Services lead to in a cluster. It may be nil.
	Behind func(cluster string, services []cache.ObjectName) addresses.Behind
	// Kept returns the address from outside that keeps a workload in a cluster which it leaves, nil if none does. Known is false as long as nobody can
	// tell. It may be nil.
	Kept func(cluster string, key identity.Key, leaves bool) (address *moves.Address, known bool)
	// Drain returns how long the policy of an object has its copy stay once its addresses have left the status; false if it says nothing. It may be nil.
	Drain func(key Key, above *metav1.PartialObjectMetadata) (time.Duration, bool)
	// Clock is for tests; nil is the real one.
	Clock clock.PassiveClock
}

// Loops are those of all connected clusters. It implements connection.Runner.
type Loops struct {
	Options

	mu        sync.Mutex
	byCluster map[string]*Loop
}

// New returns what runs the loops.
func New(o Options) *Loops {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Loops{Options: o, byCluster: map[string]*Loop{}}
}

// Run keeps a cluster in step until ctx ends.
func (a *Loops) Run(ctx context.Context, c *connection.Connection) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLoop(ctx, a, c)
	a.mu.Lock()
	a.byCluster[c.Name] = l
	a.mu.Unlock()
	l.lookAtAll()

	l.queue.Run(l.ctx, workers, l.sync)

	a.mu.Lock()
	if a.byCluster[c.Name] == l {
		delete(a.byCluster, c.Name)
	}
	a.mu.Unlock()
	_ = l.group.Wait() // none of them returns an error
	return ctx.Err()
}

// of returns the loop of a cluster, nil if none runs.
func (a *Loops) of(cluster string) *Loop {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byCluster[cluster]
}

// all are the loops that run.
func (a *Loops) all() []*Loop {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*Loop
	for _, l := range a.byCluster {
		out = append(out, l)
	}
	return out
}

// Look has an object looked at in some clusters. Those that are not connected look at everything when they are.
func (a *Loops) Look(key Key, clusters ...string) {
	for _, cluster := range clusters {
		if l := a.of(cluster); l != nil {
			l.queue.Add(key)
		}
	}
}

// LookEverywhere has an object looked at in all clusters.
func (a *Loops) LookEverywhere(key Key) {
	for _, l := range a.all() {
		l.queue.Add(key)
	}
}

// LookAtKind has all objects of a kind looked at in all clusters.
func (a *Loops) LookAtKind(resource schema.GroupResource) {
	for _, l := range a.all() {
		l.lookAtKind(resource)
	}
}

// LookAtAll has everything looked at in a cluster.
func (a *Loops) LookAtAll(cluster string) {
	if l := a.of(cluster); l != nil {
		l.lookAtAll()
	}
}

// report tells what a cluster has of an object.
func (a *Loops) report(cluster string, key Key) sighting {
	if l := a.of(cluster); l != nil {
		return l.report(key)
	}
	return sighting{}
}

// arrived reports whether all clusters of a decision have their copies. Without any there is nothing to wait for.
func (a *Loops) arrived(key Key, above *metav1.PartialObjectMetadata) bool {
	for cluster := range identity.DecisionOf(above) {
		if a.report(cluster, key).Generation == 0 {
			return false
		}
	}
	return true
}

// Placed returns the names of the objects whose decision names a cluster and that are not being deleted, sorted: kind, namespace and name.
func (a *Loops) Placed(cluster string) []string {
	var out []string
	for _, key := range a.Above.Concerns(cluster) {
		k, o, _ := a.Above.Get(key)
		if o == nil || o.DeletionTimestamp != nil {
			continue
		}
		if _, placed := identity.DecisionOf(o)[cluster]; placed {
			out = append(out, k.Name+" "+key.Namespace+"/"+key.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Owned is the number of objects of ours that a cluster has, or may have.
func (a *Loops) Owned(cluster string) int {
	l := a.of(cluster)
	if l == nil {
		return len(a.Above.Concerns(cluster))
	}
	l.lookAtAll()
	return len(l.owned())
}

// Uses reports whether a namespace of a cluster has, or is to have, custom resources of ours.
func (a *Loops) Uses(cluster, namespace string) bool {
	if slices.ContainsFunc(a.Above.Concerns(cluster), func(key Key) bool { return key.Namespace == namespace }) {
		return true
	}
	l := a.of(cluster)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches {
		if keys, _ := w.informer.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace); len(keys) > 0 {
			return true
		}
	}
	return false
}
