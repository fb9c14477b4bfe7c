package watched

import (
	"context"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Loops keep clusters in step. They only note what they are to look at: they are told while the registry is locked, and may not ask it.
type Loops interface {
	Look(key copies.Key, clusters ...string)
	LookEverywhere(key copies.Key)
	LookAtKind(resource schema.GroupResource)
}

// Options say what Kinds work with.
type Options struct {
	// Metadata has the informers of the garbage collector. One is ours as long as the Run of its controller lasts, as it is the collector's.
	Metadata metadatainformer.SharedInformerFactory
	// Indexers index the metadata of the objects of every kind, for Indexed.
	Indexers cache.Indexers
	Loops    Loops
	// Changed is told of an object that is new (before is nil), has changed, or is gone (after is nil).
	Changed func(key copies.Key, before, after *metav1.PartialObjectMetadata)
	// Again is told of an object that concerns clusters and whose kind is another one now. As Loops, it is told while the registry is locked.
	Again func(key copies.Key)
}

// Kinds are those that are defined, with their objects.
type Kinds struct {
	Options

	mu    sync.Mutex
	kinds map[schema.GroupResource]*kind
}

// kind is one whose objects above are watched. It is replaced when it changes, but for what the lock guards: its definition, and concerned.
type kind struct {
	copies.Kind
	definition *apiextensionsv1.CustomResourceDefinition
	// followed is the version in which its objects are read as workloads, if they are.
	followed string
	source   schema.GroupVersionResource
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
	// stop is closed when the informer is not needed any more.
	stop chan struct{}
	// concerned has, for every object that clusters have a copy of or are to have one, their names.
	concerned map[cache.ObjectName][]string
}

// New returns a registry without kinds.
func New(o Options) *Kinds { return &Kinds{Options: o, kinds: map[schema.GroupResource]*kind{}} }

// Define watches the objects of a kind, or those of a kind whose definition has changed. What it starts belongs to the group. Nothing is defined
// once ctx has ended.
func (r *Kinds) Define(ctx context.Context, group *errgroup.Group, k copies.Kind, crd *apiextensionsv1.CustomResourceDefinition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.kinds[k.Resource]
	if last != nil {
		k.Paths = last.Paths
		last.definition = crd
	}
	if ctx.Err() != nil || last != nil && last.Same(k) {
		return nil
	}
	w := &kind{Kind: k, definition: crd, source: k.Watched(), concerned: map[cache.ObjectName][]string{}}
	if last != nil && last.source == w.source {
		w.informer, w.handler, w.stop, w.concerned, w.followed = last.informer, last.handler, last.stop, last.concerned, last.followed
		r.kinds[k.Resource] = w
		r.lookAgain(k.Resource)
		return nil
	}
	last.drop()
	w.informer, w.stop = r.Metadata.ForResource(w.source).Informer(), make(chan struct{})
	group.Go(func() error { w.informer.GetController().Run(w.stop); return nil })
	err := index(w.informer, r.Indexers)
	if err == nil {
		w.handler, err = w.informer.AddEventHandler(r.objectHandler(k.Resource))
	}
	if err != nil {
		close(w.stop)
		delete(r.kinds, k.Resource)
		return err
	}
	r.kinds[k.Resource] = w
	r.Metadata.Start(ctx.Done())
	group.Go(func() error {
		if cache.WaitForCacheSync(w.stop, w.handler.HasSynced) {
			r.LookAgain(k.Resource) // what is there below and not above is known now
		}
		return nil
	})
	return nil
}

// index has an informer, which others may use as well, index what it has.
func index(informer cache.SharedIndexInformer, by cache.Indexers) error {
	there, missing := informer.GetIndexer().GetIndexers(), cache.Indexers{}
	for name, of := range by {
		if _, has := there[name]; !has { // a kind may be defined again
			missing[name] = of
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return informer.AddIndexers(missing)
}

// Undefine forgets a kind that is gone.
func (r *Kinds) Undefine(resource schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.kinds[resource]; last != nil {
		last.drop()
		delete(r.kinds, resource)
		r.Loops.LookAtKind(resource)
	}
}

// Close forgets all kinds, and returns what they were.
func (r *Kinds) Close() []copies.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []copies.Kind
	for _, w := range r.kinds {
		w.drop()
		out = append(out, w.Kind)
	}
	clear(r.kinds)
	return out
}

// drop ends the watch of a kind's objects, if there is one, as far as it is ours: the garbage collector may need the informer still.
func (w *kind) drop() {
	if w != nil {
		_ = w.informer.RemoveEventHandler(w.handler) // an error would say that it is gone
		close(w.stop)
	}
}

// Describe keeps where the objects of a kind have what their pods are made of, nil if nobody says it any more. It returns the kind as it is now,
// and reports whether its objects are to be read otherwise than before. Whoever does so has them looked at again.
func (r *Kinds) Describe(resource schema.GroupResource, paths *projection.PodPaths) (k copies.Kind, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.kinds[resource]
	if w == nil || w.Paths.Same(paths) && (paths == nil || w.followed == w.Versions[0]) {
		return copies.Kind{}, false
	}
	next := *w // others may be reading w
	next.Paths, next.followed = paths, w.Versions[0]
	r.kinds[resource] = &next
	return next.Kind, true
}

// LookAgain has everybody look again at the objects of a kind, unless it is gone.
func (r *Kinds) LookAgain(resource schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookAgain(resource)
}

// lookAgain is LookAgain for callers that hold the lock.
func (r *Kinds) lookAgain(resource schema.GroupResource) {
	w := r.kinds[resource]
	if w == nil {
		return // it is gone, which was told then
	}
	for name := range w.concerned {
		r.Again(copies.KeyOf(resource, name))
	}
	r.Loops.LookAtKind(resource)
}

// of returns a kind, nil if there is none.
func (r *Kinds) of(resource schema.GroupResource) *kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[resource]
}

// Kind returns the kind that is defined as a resource.
func (r *Kinds) Kind(resource schema.GroupResource) (copies.Kind, bool) {
	w := r.of(resource)
	if w == nil {
		return copies.Kind{}, false
	}
	return w.Kind, true
}

// All returns the kinds that are defined, in no order.
func (r *Kinds) All() []copies.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]copies.Kind, 0, len(r.kinds))
	for _, w := range r.kinds {
		out = append(out, w.Kind)
	}
	return out
}

// Definitions returns the definitions of all kinds, by how policies list these.
func (r *Kinds) Definitions() map[string]*apiextensionsv1.CustomResourceDefinition {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]*apiextensionsv1.CustomResourceDefinition, len(r.kinds))
	for _, w := range r.kinds {
		out[w.ListedAs()] = w.definition
	}
	return out
}

// Get returns a kind and the metadata of an object of it, which is nil if there is none. Known is false as long as that is not known.
func (r *Kinds) Get(key copies.Key) (k copies.Kind, o *metav1.PartialObjectMetadata, known bool) {
	w := r.of(key.Resource)
	if w == nil {
		return copies.Kind{}, nil, false
	}
	obj, exists, err := w.informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err == nil && exists {
		return w.Kind, obj.(*metav1.PartialObjectMetadata), true
	}
	return w.Kind, nil, w.handler.HasSynced()
}

// Named returns the kind that is defined by a group and a name.
func (r *Kinds) Named(gk schema.GroupKind) (copies.Kind, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.kinds {
		if w.Resource.Group == gk.Group && w.Name == gk.Kind {
			return w.Kind, true
		}
	}
	return copies.Kind{}, false
}

// Indexed shows the objects of all kinds that one of the Indexers has under a value.
func (r *Kinds) Indexed(index, value string, show func(k copies.Kind, o *metav1.PartialObjectMetadata)) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.kinds))
	r.mu.Unlock()
	for _, w := range all {
		for _, o := range caches.Indexed[*metav1.PartialObjectMetadata](w.informer.GetIndexer(), index, value) {
			show(w.Kind, o)
		}
	}
}

// Each shows the objects of a kind in a namespace, or in all.
func (r *Kinds) Each(resource schema.GroupResource, namespace string, show func(o *metav1.PartialObjectMetadata)) {
	if w := r.of(resource); w != nil {
		// Listing from a cache cannot fail.
		_ = cache.ListAllByNamespace(w.informer.GetIndexer(), namespace, labels.Everything(), func(obj any) {
			show(obj.(*metav1.PartialObjectMetadata))
		})
	}
}

// Concerns returns what a cluster has or is to have, as far as the logical cluster tells.
func (r *Kinds) Concerns(cluster string) []copies.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []copies.Key
	for resource, w := range r.kinds {
		for name, clusters := range w.concerned {
			if slices.Contains(clusters, cluster) {
				out = append(out, copies.KeyOf(resource, name))
			}
		}
	}
	return out
}
