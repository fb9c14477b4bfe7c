package logical

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// referencesKept bounds of how many versions of objects it is remembered what they refer to.
const referencesKept = 16384

// Versions are the objects of the logical cluster as clusters are to hold them, and what they name at that. What an object refers to may differ from
// revision to revision. An index cannot follow that, since a revision may come after the object that names it, so it is found out when it is asked
// for, and remembered.
type Versions struct {
	*held.Versions

	// indexed returns the objects of a kind that an index has under a value.
	indexed    func(of schema.GroupVersionResource, index, value string) []projection.Object
	references heldReferences
}

// For returns an object as one cluster is to hold it, or for "" as any is or stands. What cannot be read is left out.
func (v *Versions) For(kind projection.Kind, above projection.Object, cluster string) []projection.Object {
	if !identity.NamesRevisions(above) {
		return []projection.Object{above}
	}
	if cluster != "" {
		version, err := v.In(kind, above, cluster)
		if err != nil {
			return nil
		}
		return []projection.Object{version.Object}
	}
	versions, _ := v.All(kind, above)
	out := make([]projection.Object, 0, len(versions))
	for _, version := range versions {
		out = append(out, version.Object)
	}
	return out
}

// HeldIn returns the objects of a kind in a namespace that name revisions for clusters.
func (v *Versions) HeldIn(resource schema.GroupVersionResource, namespace string) []projection.Object {
	return v.indexed(resource, byHeld, namespace)
}

// Naming returns the objects of a kind that any cluster is to hold at a revision.
func (v *Versions) Naming(resource schema.GroupVersionResource, revision cache.ObjectName) []projection.Object {
	return v.indexed(resource, byRevision, revision.String())
}

// ReferringIn returns the objects of a kind that refer to key as a cluster is to hold them, or for "" as any is.
func (v *Versions) ReferringIn(of schema.GroupVersionResource, key identity.Key, cluster string) []projection.Object {
	out := v.indexed(of, byReference, referenceIndex(key))
	heldThere := v.HeldIn(of, key.Namespace)
	if len(heldThere) == 0 {
		return out
	}
	kind, ok := projection.ForResource(of)
	if !ok {
		return out
	}
	// Those that refer to it as they stand may not do so as they are held.
	out = slices.DeleteFunc(slices.Clone(out), func(obj projection.Object) bool { return identity.NamesRevisions(obj) })
	for _, obj := range heldThere {
		if v.refers(kind, obj, key, cluster) {
			out = append(out, obj)
		}
	}
	return out
}

// refers reports whether an object that is held at revisions refers to key in a cluster, or for "" in any.
func (v *Versions) refers(kind projection.Kind, above projection.Object, key identity.Key, cluster string) bool {
	revisions := identity.RevisionsOf(above)
	if cluster != "" {
		revisions = []identity.Revision{identity.RevisionIn(above, cluster)}
	}
	return slices.ContainsFunc(revisions, func(revision identity.Revision) bool {
		if revision == (identity.Revision{}) {
			return refersTo(kind.References(above), key)
		}
		return v.references.of(v.Versions, kind, above, revision)[key]
	})
}

func refersTo(references []projection.Reference, key identity.Key) bool {
	return slices.ContainsFunc(references, func(ref projection.Reference) bool { return identity.KeyOfReference(ref) == key })
}

// AsHeld returns a workload as a cluster is to hold it, and as it stands if that cannot be read.
func (v *Versions) AsHeld(w identity.Workload, cluster string) projection.Object {
	for _, version := range v.For(w.Kind, w.Object, cluster) {
		return version
	}
	return w.Object
}

// given reports whether a cluster may have pods of a template that a workload has or had. One that is held at a revision is not given those that others
// are to have instead, or that the workload has as it stands. Earlier ones it may still be replacing.
func (v *Versions) given(w identity.Workload, cluster string, template *corev1.PodTemplateSpec) bool {
	if !identity.NamesRevisions(w.Object) {
		return true
	}
	hash, mine := projection.TemplateHash(template), identity.RevisionIn(w.Object, cluster)
	has := func(object projection.Object) bool {
		of := w.Kind.Demand(object).Template
		return of != nil && projection.TemplateHash(of) == hash
	}
	last := identity.BreakdownOf(w.Object)[cluster]
	for _, own := range []identity.Revision{mine, {Name: last.Revision, Target: last.Target}} {
		if version, err := v.At(w.Kind, w.Object, own); err == nil && (own.Name != "" || mine == own) && has(version.Object) {
			return true
		}
	}
	versions, _ := v.All(w.Kind, w.Object)
	return !has(w.Object) && !slices.ContainsFunc(versions, func(version held.Version) bool { return has(version.Object) })
}

// MayRun returns why a cluster can have no pods of a controller above, nil if it can: those of a ReplicaSet are of a revision of its Deployment, which
// may not be the cluster's.
func (v *Versions) MayRun(cluster string, controller, decider identity.Workload) error {
	template := controller.Kind.Demand(controller.Object).Template
	if controller.Kind.Resource != identity.ReplicaSets || template == nil || controller.GetUID() == decider.GetUID() || v.given(decider, cluster, template) {
		return nil
	}
	if identity.Viewed(decider.Object) {
		return fmt.Errorf("cluster %q holds %s %s as it was written through its own view, and %s %s is of another one", cluster, decider.Kind.GVK.Kind, decider.GetName(),
			controller.Kind.GVK.Kind, controller.GetName())
	}
	return fmt.Errorf("%s %s is held at revision %q in cluster %q, and %s %s is of another one", decider.Kind.GVK.Kind, decider.GetName(),
		identity.RevisionIn(decider.Object, cluster).Name, cluster, controller.Kind.GVK.Kind, controller.GetName())
}

// heldReferences remember what objects refer to at revisions.
type heldReferences struct{ known *lru.Cache }

// atRevision is a version of an object.
type atRevision struct {
	uid types.UID
	identity.Revision
}

// referred is what a version refers to, as long as the manifest has that hash.
type referred struct {
	hash string
	keys map[identity.Key]bool
}

// of returns what an object refers to at a revision, nothing if that cannot be read.
func (r heldReferences) of(versions *held.Versions, kind projection.Kind, above projection.Object, at identity.Revision) map[identity.Key]bool {
	hash, err := versions.HashAt(kind, above, at)
	if err != nil {
		return nil
	}
	key := atRevision{above.GetUID(), at}
	if found, ok := r.known.Get(key); ok && found.(referred).hash == hash {
		return found.(referred).keys
	}
	version, err := versions.At(kind, above, at)
	if err != nil {
		return nil
	}
	out := referred{version.Hash, map[identity.Key]bool{}}
	for _, ref := range kind.References(version.Object) {
		out.keys[identity.KeyOfReference(ref)] = true
	}
	r.known.Add(key, out)
	return out.keys
}

func indexHeld(kind projection.Kind) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(projection.Object); ok && identity.NamesRevisions(o) && !kind.Mirror(o) {
			return []string{o.GetNamespace()}, nil
		}
		return nil, nil
	}
}

func indexRevision(kind projection.Kind) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		o, ok := obj.(projection.Object)
		if !ok || !identity.NamesRevisions(o) || kind.Mirror(o) {
			return nil, nil
		}
		var out []string
		for _, revision := range identity.RevisionsOf(o) {
			if revision.Name != "" {
				out = append(out, cache.ObjectName{Namespace: o.GetNamespace(), Name: revision.Name}.String())
			}
		}
		slices.Sort(out)
		return slices.Compact(out), nil
	}
}
