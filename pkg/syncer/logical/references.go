package logical

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// references is an index, for one kind, of the objects that are held at revisions by what they refer to at any of these. An application may have many
// thousands of objects, and of each it is asked who needs it.
//
// An index of the store cannot know that, since a revision may come after the object that names it. So the store only notes which objects have changed,
// and whoever asks reads these anew, with those whose revision is another one now, or could not be read before.
type references struct {
	kind     projection.Kind
	store    cache.Store
	versions *Versions

	// noting guards changed: the names of objects, by their namespaces, that have changed since they were read. It is taken while the store is locked, so
	// that nothing may be asked of the store by who has it.
	noting  sync.Mutex
	changed map[string]sets.Set[string]

	mu         sync.Mutex
	namespaces map[string]*heldIn
}

// heldIn are the objects of a namespace that are held at revisions.
type heldIn struct {
	objects map[string]heldObject
	// referring are the names of those that refer to something, at any revision.
	referring map[identity.Key]sets.Set[string]
	// editions are those of the revisions that are named, when they were read, and naming the names of the objects that name them.
	editions map[string]string
	naming   map[string]sets.Set[string]
	// compared is when editions were compared last.
	compared contents.Moment
	// unread are those of which some revision could not be read, and awaited those of them that may be read although nothing else changes.
	unread, awaited sets.Set[string]
}

// heldObject is an object as it was read.
type heldObject struct {
	projection.Object
	// refers has what it refers to at each revision. What cannot be read refers to nothing.
	refers map[identity.Revision]map[identity.Key]bool
	// versions are the object at each revision that can be read, of what has pods or selects some: who asks what belongs together asks about each of them.
	versions map[identity.Revision]projection.Object
	// revisions are those that it is held at, and in those of the clusters that were asked about.
	revisions []identity.Revision
	in        map[string]identity.Revision
}

func newReferences(kind projection.Kind, versions *Versions) *references {
	return &references{kind: kind, versions: versions, changed: map[string]sets.Set[string]{}, namespaces: map[string]*heldIn{}}
}

// note is an index function that indexes nothing. The store calls it for every object that comes, changes or goes, before anybody can see that.
func (r *references) note(obj any) ([]string, error) {
	o, ok := obj.(projection.Object)
	if !ok || !identity.NamesRevisions(o) || r.kind.Mirror(o) {
		return nil, nil
	}
	r.noting.Lock()
	defer r.noting.Unlock()
	names := r.changed[o.GetNamespace()]
	if names == nil {
		names = sets.New[string]()
		r.changed[o.GetNamespace()] = names
	}
	names.Insert(o.GetName())
	return nil, nil
}

// to returns the objects that refer to key as a cluster is to hold them, or for "" as any is.
func (r *references) to(key identity.Key, cluster string) []projection.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.look(key.Namespace)
	var out []projection.Object
	for name := range in.referring[key] {
		if object, is := r.current(in, key.Namespace, name); is && object.refersTo(key, cluster) {
			out = append(out, object.Object)
		}
	}
	return out
}

// unreadIn returns the objects of a namespace of which some revision cannot be read.
func (r *references) unreadIn(namespace string) []projection.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.look(namespace)
	var out []projection.Object
	for name := range in.unread {
		if object, is := r.current(in, namespace, name); is {
			out = append(out, object.Object)
		}
	}
	return out
}

// get returns an object of the store, nil for none.
func (r *references) get(namespace, name string) projection.Object {
	return caches.Named[projection.Object](r.store, cache.ObjectName{Namespace: namespace, Name: name}.String())
}

// current returns an object if it is there and held. When a watch begins anew, the store does not note which objects are gone.
func (r *references) current(in *heldIn, namespace, name string) (heldObject, bool) {
	if in.objects[name].Object != r.get(namespace, name) {
		r.forget(in, name)
		r.read(in, namespace, name)
	}
	object, is := in.objects[name]
	return object, is
}

// at returns the versions of an object as a cluster is to hold it, or for "" as any is, as far as they can be read. It does not know those of another object
// than the one that the store has.
func (r *references) at(above projection.Object, cluster string) (versions []projection.Object, known bool) {
	if !r.kind.Workload && !r.kind.SelectsPods() {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	object := r.look(above.GetNamespace()).objects[above.GetName()]
	if object.Object != above {
		return nil, false
	}
	for _, at := range object.heldAt(cluster) {
		if version := object.versions[at]; version != nil {
			versions = append(versions, version)
		}
	}
	return versions, true
}

// heldAt returns at which revision a cluster is to hold the object, or for "" at which any is. The caller holds mu.
func (o heldObject) heldAt(cluster string) []identity.Revision {
	if cluster == "" {
		return o.revisions
	}
	at, known := o.in[cluster]
	if !known {
		at = identity.RevisionIn(o, cluster)
		o.in[cluster] = at
	}
	return []identity.Revision{at}
}

func (o heldObject) refersTo(key identity.Key, cluster string) bool {
	return slices.ContainsFunc(o.heldAt(cluster), func(at identity.Revision) bool { return o.refers[at][key] })
}

// look brings a namespace up to date. The caller holds mu.
func (r *references) look(namespace string) *heldIn {
	r.noting.Lock()
	stale := r.changed[namespace]
	delete(r.changed, namespace)
	r.noting.Unlock()

	in := r.namespaces[namespace]
	if in == nil {
		if stale.Len() == 0 {
			return &heldIn{}
		}
		in = &heldIn{
			objects: map[string]heldObject{}, referring: map[identity.Key]sets.Set[string]{}, editions: map[string]string{},
			naming: map[string]sets.Set[string]{}, unread: sets.New[string](), awaited: sets.New[string](),
		}
		r.namespaces[namespace] = in
	}
	if now, known := r.versions.Moment(); !known || now != in.compared {
		in.compared = now
		for revision, edition := range in.editions {
			if r.versions.Edition(namespace, revision) != edition {
				stale = stale.Union(in.naming[revision])
			}
		}
	}
	if in.awaited.Len() > 0 {
		stale = stale.Union(in.awaited)
	}
	for name := range stale { // all of them first, so that no edition is left that somebody has read
		r.forget(in, name)
	}
	for name := range stale {
		r.read(in, namespace, name)
	}
	if len(in.objects) == 0 {
		delete(r.namespaces, namespace)
	}
	return in
}

// read takes up an object as it is now, if it is there and held.
func (r *references) read(in *heldIn, namespace, name string) {
	above := r.get(namespace, name)
	if above == nil || !identity.NamesRevisions(above) || r.kind.Mirror(above) {
		return
	}
	object := heldObject{
		above, map[identity.Revision]map[identity.Key]bool{}, map[identity.Revision]projection.Object{}, identity.RevisionsOf(above), map[string]identity.Revision{},
	}
	for _, at := range revisionsNamed(above) {
		if at.Name != "" && !at.OfView() {
			r.follow(in, namespace, name, at.Name)
		}
		keys, version, err := r.readAt(above, at)
		if err != nil {
			in.unread.Insert(name)
		}
		if held.MayCome(err) && in.editions[at.Name] != "" {
			in.awaited.Insert(name)
		}
		for key := range keys {
			if in.referring[key] == nil {
				in.referring[key] = sets.New[string]()
			}
			in.referring[key].Insert(name)
		}
		object.refers[at], object.versions[at] = keys, version
	}
	in.objects[name] = object
}

// follow has an object read anew when a revision is another one.
func (r *references) follow(in *heldIn, namespace, name, revision string) {
	if in.naming[revision] == nil {
		in.naming[revision] = sets.New[string]()
		in.editions[revision] = r.versions.Edition(namespace, revision)
	}
	in.naming[revision].Insert(name)
}

// readAt returns what an object refers to at a revision, and of what has pods or selects some what it is then.
func (r *references) readAt(above projection.Object, at identity.Revision) (map[identity.Key]bool, projection.Object, error) {
	if !r.kind.Workload && !r.kind.SelectsPods() && at != (identity.Revision{}) {
		keys, err := r.versions.known.of(r.versions.Versions, r.kind, above, at)
		return keys, nil, err
	}
	version, err := r.versions.At(r.kind, above, at)
	if err != nil {
		return nil, nil, err
	}
	return keysOf(r.kind.References(version.Object)), version.Object, nil
}

// forget drops an object.
func (r *references) forget(in *heldIn, name string) {
	for _, keys := range in.objects[name].refers {
		for key := range keys {
			if in.referring[key].Delete(name); in.referring[key].Len() == 0 {
				delete(in.referring, key)
			}
		}
	}
	for at := range in.objects[name].refers {
		if in.naming[at.Name].Delete(name); in.naming[at.Name].Len() == 0 {
			delete(in.naming, at.Name)
			delete(in.editions, at.Name)
		}
	}
	in.unread.Delete(name)
	in.awaited.Delete(name)
	delete(in.objects, name)
}

// revisionsNamed are the revisions at which a cluster may have to do with an object, and the object as it stands.
func revisionsNamed(above projection.Object) []identity.Revision {
	out := sets.New(identity.RevisionsOf(above)...).Insert(identity.Revision{})
	for _, share := range identity.DecisionOf(above) { // a cluster that comes may take over that of one which holds what was written through its view
		out.Insert(identity.Revision{Name: share.Revision, Target: share.Target})
	}
	return out.UnsortedList()
}

func keysOf(references []projection.Reference) map[identity.Key]bool {
	out := make(map[identity.Key]bool, len(references))
	for _, ref := range references {
		out[identity.KeyOfReference(ref)] = true
	}
	return out
}
