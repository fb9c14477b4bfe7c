package custom

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// loopWorkers is how many objects one cluster is sent at a time.
const loopWorkers = 4

// loop brings the custom resources of one cluster in line.
type loop struct {
	*Controller
	cluster string
	client  dynamic.Interface
	budget  *bounds.Budget
	target  projection.Target
	queue   *steps.Queue[Key]
	// ctx ends with the loop, and group with everything that it started.
	ctx   context.Context
	group *errgroup.Group

	mu      sync.Mutex
	watches map[schema.GroupResource]*watch
	states  map[Key]state
}

// state is what the last step with an object came to.
type state struct {
	// above is the metadata of the object that desired was made of.
	above *metav1.PartialObjectMetadata
	// desired is the projection that the cluster has, nil if it does not.
	desired *unstructured.Unstructured
	// accepted is the generation at which the cluster has made of desired what it makes of it: it may drop fields that it does not know, or
	// a webhook may change them, and applying it again would come to the same.
	accepted int64
	// problem says why the cluster does not have the projection, in words for the user.
	problem string
	// absent tells that the cluster was seen to have nothing of an object that says it may.
	absent bool
}

// news reports whether a state is worth another report.
func (s state) news(last state) bool {
	return last.problem != s.problem || last.absent != s.absent || (last.above == nil) != (s.above == nil) ||
		s.above != nil && last.above.Generation != s.above.Generation
}

// runLoop keeps a cluster in step until ctx ends.
func (c *Controller) runLoop(ctx context.Context, connection *clusters.Connection) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", connection.Name))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &loop{
		Controller: c,
		cluster:    connection.Name,
		client:     connection.Dynamic,
		budget:     connection.Budget,
		target:     projection.Target{LogicalCluster: c.Upstream.LogicalCluster, Cluster: connection.Name},
		queue:      steps.NewQueue[Key]("custom-"+connection.Name, connection.Answers),
		ctx:        ctx, group: &errgroup.Group{},
		watches: map[schema.GroupResource]*watch{},
		states:  map[Key]state{},
	}
	c.mu.Lock()
	c.loops[l.cluster] = l
	c.mu.Unlock()
	l.enqueueEverything()

	l.queue.Run(ctx, loopWorkers, l.sync)

	c.mu.Lock()
	if c.loops[l.cluster] == l {
		delete(c.loops, l.cluster)
	}
	c.mu.Unlock()
	_ = l.group.Wait() // none of them returns an error
	return ctx.Err()
}

// Runner returns what runs the loops of clusters.
func (c *Controller) Runner() clusters.Runner { return runner{c} }

type runner struct{ controller *Controller }

// Run implements clusters.Runner.
func (r runner) Run(ctx context.Context, c *clusters.Connection) error {
	return r.controller.runLoop(ctx, c)
}

// watch is the watch of one kind in the cluster: of what carries our label.
type watch struct {
	version  string
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc

	mu sync.Mutex
	// refusal is why the cluster does not let us list, "" if it has not said so.
	refusal string
}

func (w *watch) get(key Key) *unstructured.Unstructured {
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return nil
	}
	return obj.(*unstructured.Unstructured)
}

func (w *watch) refused() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// enqueueEverything looks at all that the cluster is to have and at all that it has.
func (l *loop) enqueueEverything() {
	for _, c := range l.concerns(l.cluster) {
		l.queue.Add(Key{c.kind, c.name.Namespace, c.name.Name})
	}
	l.mu.Lock()
	kinds := slices.Collect(maps.Keys(l.watches))
	l.mu.Unlock()
	for _, kind := range kinds {
		l.enqueueKind(kind)
	}
}

// enqueueKind looks at all that the cluster has of a kind.
func (l *loop) enqueueKind(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.states {
		if key.Resource == resource {
			l.queue.Add(key)
		}
	}
	if w := l.watches[resource]; w != nil {
		for _, name := range w.informer.GetIndexer().ListKeys() {
			if namespace, name, err := cache.SplitMetaNamespaceKey(name); err == nil {
				l.queue.Add(Key{resource, namespace, name})
			}
		}
	}
}

func (l *loop) stateOf(key Key) state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.states[key]
}

// setState notes what a step came to, and has the report looked at again if that is something else than before.
func (l *loop) setState(key Key, next state) {
	l.mu.Lock()
	last := l.states[key]
	if next == (state{}) {
		delete(l.states, key)
	} else {
		l.states[key] = next
	}
	l.mu.Unlock()
	if next.news(last) {
		l.changed(key)
	}
}

// sighting is what the cluster is known to have of an object.
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
func (l *loop) report(key Key) sighting {
	l.mu.Lock()
	w, st := l.watches[key.Resource], l.states[key]
	l.mu.Unlock()
	out := sighting{CustomReport: summary.CustomReport{Problem: st.problem}}
	switch {
	case w == nil:
		// Where the kind is not served there is none of it; otherwise the first step starts the watch.
		out.known = l.unserved(key)
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
	if origin, owned := originOf(live); !owned || origin.Namespace != key.Namespace || origin.Name != key.Name {
		return out
	}
	out.Live = live
	out.compared = st.desired != nil || st.problem != ""
	if st.desired != nil && hashOf(live) == hashOf(st.desired) {
		out.Generation = st.above.Generation
	}
	return out
}

func originOf(live *unstructured.Unstructured) (projection.Origin, bool) {
	if live == nil {
		return projection.Origin{}, false
	}
	return projection.OriginOf(live)
}

// unserved reports whether the cluster is known not to serve a kind.
func (l *loop) unserved(key Key) bool {
	k, _, _ := l.get(key)
	if len(k.versions) == 0 {
		return true
	}
	_, served := l.versionOf(k)
	return !served
}

// versionOf returns the version of a kind that the cluster is sent.
func (l *loop) versionOf(k kind) (version string, served bool) {
	cluster, err := l.clusters.Get(l.cluster)
	if err != nil {
		return "", false
	}
	return k.servedBy(cluster.Status.Kinds)
}

// Placed returns the names of the objects whose decision names a cluster and that are not being deleted, sorted: kind, namespace and name.
func (c *Controller) Placed(cluster string) []string {
	var out []string
	for _, on := range c.concerns(cluster) {
		k, o, _ := c.get(Key{on.kind, on.name.Namespace, on.name.Name})
		if o == nil || o.DeletionTimestamp != nil {
			continue
		}
		if _, placed := decisionOf(o)[cluster]; placed {
			out = append(out, k.name+" "+on.name.String())
		}
	}
	slices.Sort(out)
	return out
}

// Owned is the number of objects of ours that a cluster has, or may have.
func (c *Controller) Owned(cluster string) int {
	l := c.loop(cluster)
	if l == nil {
		return len(c.concerns(cluster))
	}
	l.enqueueEverything()
	owned := map[Key]bool{}
	for _, on := range c.concerns(cluster) {
		key := Key{on.kind, on.name.Namespace, on.name.Name}
		if seen := l.report(key); !seen.known || seen.Live != nil {
			owned[key] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for resource, w := range l.watches {
		for _, name := range w.informer.GetIndexer().ListKeys() {
			if namespace, name, err := cache.SplitMetaNamespaceKey(name); err == nil {
				owned[Key{resource, namespace, name}] = true
			}
		}
	}
	return len(owned)
}

// Uses reports whether a namespace of a cluster has, or is to have, custom resources of ours.
func (c *Controller) Uses(cluster, namespace string) bool {
	if slices.ContainsFunc(c.concerns(cluster), func(on concern) bool { return on.name.Namespace == namespace }) {
		return true
	}
	l := c.loop(cluster)
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

// uidOf returns the UID of an object above, "" if there is none: then what is left of it below is, whatever it was.
func uidOf(o *metav1.PartialObjectMetadata) types.UID {
	if o == nil {
		return ""
	}
	return o.UID
}
