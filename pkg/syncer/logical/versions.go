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
// revision to revision.
type Versions struct {
	*held.Versions

	// indexed returns the objects of a kind that an index has under a value.
	indexed func(of schema.GroupVersionResource, index, value string) []projection.Object
	// held has for each kind what objects refer to at revisions, and known remembers that.
	held  map[schema.GroupVersionResource]*references
	known heldReferences
}

// For returns an object as one cluster is to hold it, or for "" as any is or stands. What cannot be read is left out.
func (v *Versions) For(kind projection.Kind, above projection.Object, cluster string) []projection.Object {
	if !identity.NamesRevisions(above) {
		return []projection.Object{above}
	}
	if of := v.held[kind.Resource]; of != nil {
		if versions, known := of.at(above, cluster); known {
			return versions
		}
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

// UnreadIn returns the objects of a kind in a namespace that name revisions for clusters of which some cannot be read.
func (v *Versions) UnreadIn(resource schema.GroupVersionResource, namespace string) []projection.Object {
	if of := v.held[resource]; of != nil {
		return of.unreadIn(namespace)
	}
	return nil
}

// Naming returns the objects of a kind that any cluster is to hold at a revision.
func (v *Versions) Naming(resource schema.GroupVersionResource, revision cache.ObjectName) []projection.Object {
	return v.indexed(resource, byRevision, revision.String())
}

// ReferringIn returns the objects of a kind that refer to key as a cluster is to hold them, or for "" as any is.
func (v *Versions) ReferringIn(of schema.GroupVersionResource, key identity.Key, cluster string) []projection.Object {
	out := v.indexed(of, byReference, referenceIndex(key))
	if v.held[of] == nil {
		return out
	}
	// Those that refer to it as they stand may not do so as they are held.
	out = slices.DeleteFunc(out, func(obj projection.Object) bool { return identity.NamesRevisions(obj) })
	return append(out, v.held[of].to(key, cluster)...)
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
type heldReferences struct{ last *lru.Cache }

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

// of returns what an object refers to at a revision.
func (r heldReferences) of(versions *held.Versions, kind projection.Kind, above projection.Object, at identity.Revision) (map[identity.Key]bool, error) {
	hash, err := versions.HashAt(kind, above, at)
	if err != nil {
		return nil, err
	}
	key := atRevision{above.GetUID(), at}
	if found, ok := r.last.Get(key); ok && found.(referred).hash == hash {
		return found.(referred).keys, nil
	}
	version, err := versions.At(kind, above, at)
	if err != nil {
		return nil, err
	}
	out := referred{version.Hash, keysOf(kind.References(version.Object))}
	r.last.Add(key, out)
	return out.keys, nil
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
