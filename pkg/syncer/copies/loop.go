package copies

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// workers is how many objects one cluster is sent at a time.
const workers = 4

// Loop brings the custom resources of one cluster in line.
type Loop struct {
	*Loops
	cluster string
	client  dynamic.Interface
	budget  *bounds.Budget
	target  projection.Target
	queue   *steps.Queue[Key]
	// ctx ends with the loop, and group with everything that it started.
	ctx   context.Context
	group *errgroup.Group

	// states are what the last steps came to, and made the projections that they made.
	states *states.States[Key]
	made   memory

	mu      sync.Mutex
	watches map[schema.GroupResource]*watch
}

// newLoop returns the loop of a cluster, which runs as long as ctx lasts.
func newLoop(ctx context.Context, all *Loops, c *connection.Connection) *Loop {
	l := &Loop{
		Loops:   all,
		cluster: c.Name,
		client:  c.Dynamic,
		budget:  c.Budget,
		target:  projection.Target{LogicalCluster: all.LogicalCluster(), Cluster: c.Name},
		queue:   steps.NewQueue[Key](all.Queues.Of("custom-"+c.Name), c.Answers),
		ctx:     klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", c.Name)),
		group:   &errgroup.Group{},
		watches: map[schema.GroupResource]*watch{},
	}
	l.states = states.New(func(key Key) { l.queue.Add(key) }, func(Key) {})
	return l
}

// lookAtAll looks at all that the cluster is to have and at all that it has.
func (l *Loop) lookAtAll() {
	for _, key := range l.Above.Concerns(l.cluster) {
		l.queue.Add(key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for resource := range l.watches {
		l.lookAtKindLocked(resource)
	}
}

// lookAtKind looks at all that the cluster has of a kind.
func (l *Loop) lookAtKind(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookAtKindLocked(resource)
}

func (l *Loop) lookAtKindLocked(resource schema.GroupResource) {
	for _, key := range l.states.Known() {
		if key.Resource == resource {
			l.queue.Add(key)
		}
	}
	if w := l.watches[resource]; w != nil {
		for _, key := range w.keys(resource) {
			l.queue.Add(key)
		}
	}
}

// done notes what a step came to, and has the report looked at again if that is something else than before.
func (l *Loop) done(key Key, next states.State) {
	if next.Hash == "" {
		l.made.forget(key)
	}
	if _, news := l.states.Done(key, next); news {
		l.Above.Changed(key, false)
	}
}

// sighting is what a cluster is known to have of an object.
type sighting struct {
	summary.CustomReport
	// known is false until all that the cluster has of the kind was seen.
	known bool
	// blind tells that the cluster refuses to show it.
	blind bool
	// compared tells that the copy was held against the projection that it should be. Until then nothing is known of its generation.
	compared bool
}

// report tells what the cluster has of an object.
func (l *Loop) report(key Key) sighting {
	l.mu.Lock()
	w := l.watches[key.Resource]
	l.mu.Unlock()
	st := l.states.Of(key)
	out := sighting{CustomReport: summary.CustomReport{Problem: st.Problem}}
	switch {
	case w == nil:
		// Where the kind is not served there is none of it; otherwise the first step starts the watch.
		k, _, _ := l.Above.Get(key)
		out.known = !l.serves(k)
		return out
	case w.informer.HasSynced():
		out.known = true
	case w.refused() != "":
		out.known, out.blind = true, true
		return out
	default:
		return out
	}
	live := w.get(key)
	if live == nil {
		return out
	}
	if origin, owned := projection.OriginOf(live); !owned || origin.Namespace != key.Namespace || origin.Name != key.Name {
		return out
	}
	out.Live = live
	out.compared = st.Hash != "" || st.Problem != "" || st.Excluded
	if st.Hash != "" && hashOf(live) == st.Hash {
		out.Generation, out.Routes, out.Content = st.Generation, st.Routes, st.Revision
		if st.Older {
			out.Generation = max(1, out.Generation-1) // it does not carry out the last one
		}
	}
	return out
}

// serves reports whether the cluster serves a kind, as far as is known.
func (l *Loop) serves(k Kind) bool {
	if len(k.Versions) == 0 {
		return false
	}
	_, served := l.versionOf(k)
	return served
}

// versionOf returns the version of a kind that the cluster is sent.
func (l *Loop) versionOf(k Kind) (version string, served bool) {
	cluster, err := l.Clusters.Get(l.cluster)
	if err != nil {
		return "", false
	}
	return k.servedBy(cluster.Status.Kinds)
}

// owned returns what the cluster has of ours, or may have.
func (l *Loop) owned() map[Key]bool {
	out := map[Key]bool{}
	for _, key := range l.Above.Concerns(l.cluster) {
		if seen := l.report(key); !seen.known || seen.Live != nil {
			out[key] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for resource, w := range l.watches {
		for _, key := range w.keys(resource) {
			out[key] = true
		}
	}
	return out
}

func hashOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return obj.GetAnnotations()[v1alpha1.AnnotationProjection]
}

// routesIn is the mark of what a copy has otherwise than the object above says.
func routesIn(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return projection.RouteMark(obj)
}
