package pipelines

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// key names a pipeline.
type key struct {
	group string
	cache.ObjectName
}

func (k key) String() string { return weave.Resource + "." + k.group + " " + k.ObjectName.String() }

// place is where a target is. The cluster is "" for the logical one.
type place struct{ cluster, namespace string }

// memory is what is remembered of a pipeline. It saves reads, and is built anew after a restart.
type memory struct {
	// pipeline is as it was read or written last. It is replaced and never changed.
	pipeline *weave.Pipeline
	// waits is since when something is about to be known, zero if nothing is. The worker of the pipeline alone uses it.
	waits time.Time
}

// index says which pipelines have targets where.
type index struct {
	mu        *sync.Mutex
	memories  map[key]*memory
	byPlace   map[place]map[key]bool
	byCluster map[string]map[key]bool
	// byNamespace has targets of all clusters: what they have comes from that namespace of the logical one.
	byNamespace map[string]map[key]bool
}

func newIndex() index {
	return index{
		mu: &sync.Mutex{}, memories: map[key]*memory{}, byPlace: map[place]map[key]bool{}, byCluster: map[string]map[key]bool{}, byNamespace: map[string]map[key]bool{},
	}
}

// of returns what is remembered of a pipeline, nil if nothing is.
func (x index) of(k key) *memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.memories[k]
}

// keep remembers a pipeline as it is now.
func (x index) keep(k key, p *weave.Pipeline) *memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.memories[k]
	if m == nil {
		m = &memory{}
		x.memories[k] = m
	}
	before := m.pipeline
	m.pipeline = p
	if before != nil && before.UID == p.UID && before.Generation == p.Generation {
		return m
	}
	x.drop(k, before)
	for at := range places(p) {
		put(x.byPlace, at, k)
		put(x.byNamespace, at.namespace, k)
		if at.cluster != "" {
			put(x.byCluster, at.cluster, k)
		}
	}
	return m
}

// outdated has a pipeline be read again.
func (x index) outdated(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.memories[k]; m != nil {
		again := *m.pipeline
		again.ResourceVersion = ""
		m.pipeline = &again
	}
}

// forget forgets a pipeline.
func (x index) forget(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.memories[k]; m != nil {
		x.drop(k, m.pipeline)
		delete(x.memories, k)
	}
}

// drop takes the places of a pipeline out. The caller holds the lock.
func (x index) drop(k key, p *weave.Pipeline) {
	if p == nil {
		return
	}
	for at := range places(p) {
		take(x.byPlace, at, k)
		take(x.byNamespace, at.namespace, k)
		take(x.byCluster, at.cluster, k)
	}
}

func put[P comparable](in map[P]map[key]bool, at P, k key) {
	if in[at] == nil {
		in[at] = map[key]bool{}
	}
	in[at][k] = true
}

func take[P comparable](from map[P]map[key]bool, at P, k key) {
	delete(from[at], k)
	if len(from[at]) == 0 {
		delete(from, at)
	}
}

// places are those of the targets of a pipeline.
func places(p *weave.Pipeline) map[place]bool {
	out := map[place]bool{}
	for _, e := range p.Spec.Environments {
		for _, t := range e.Targets {
			out[placeOf(t)] = true
		}
	}
	return out
}

func placeOf(t weave.Target) place { return place{t.Cluster(), t.Namespace} }

// inNamespace returns the pipelines that have a target in a namespace, in whatever cluster. All of them are meant if meant is nil.
func (x index) inNamespace(namespace string, meant func(*weave.Pipeline) bool) []key {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pick(x.byNamespace[namespace], meant)
}

// inPlace returns the pipelines that have a target in a namespace of a cluster.
func (x index) inPlace(at place, meant func(*weave.Pipeline) bool) []key {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pick(x.byPlace[at], meant)
}

// ofCluster returns the pipelines that have a target in a cluster.
func (x index) ofCluster(cluster string) []key {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pick(x.byCluster[cluster], nil)
}

// livingIn returns the pipelines that are in a namespace themselves.
func (x index) livingIn(namespace string) []key {
	return slices.DeleteFunc(x.all(), func(k key) bool { return k.Namespace != namespace })
}

// all returns all pipelines.
func (x index) all() []key {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]key, 0, len(x.memories))
	for k := range x.memories {
		out = append(out, k)
	}
	return out
}

func (x index) pick(from map[key]bool, meant func(*weave.Pipeline) bool) []key {
	var out []key
	for k := range from {
		if meant == nil || meant(x.memories[k].pipeline) {
			out = append(out, k)
		}
	}
	return out
}

// matters reports whether a change of a Cluster may change what is shown of it.
func matters(before, after *manifold.Cluster) bool {
	running := func(c *manifold.Cluster) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, manifold.ClusterSyncerRunning)
	}
	return before.UID != after.UID || observe.Silent(before) != observe.Silent(after) || running(before) != running(after) ||
		before.Spec.Allows.Pipelines != after.Spec.Allows.Pipelines || !equality.Semantic.DeepEqual(before.Status.Kinds, after.Status.Kinds)
}

// meant reports whether a definition is that of a kind which matters here.
func meant(definition string) bool {
	for _, resource := range versions.Custom {
		if definition == resource.String() {
			return true
		}
	}
	return slices.ContainsFunc(weave.GroupVersions, func(gv schema.GroupVersion) bool { return definition == weave.Resource+"."+gv.Group })
}
