package tree

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// key names an object of the namespace that the tree is about.
type key struct {
	resource schema.GroupVersionResource
	name     string
}

// index finds objects by what ties them to each other.
type index struct {
	byKey   map[key]projection.Object
	byOwner map[types.UID][]projection.Object
	// referrers are the objects that need another one, and followers those that go along with it.
	referrers, followers map[key][]projection.Object
	workloads            []projection.Object
	// sorted are all objects, by kind and name.
	sorted []projection.Object
	// joined are the names of the clusters.
	joined []string
}

// kindOf returns how objects of the object's kind are projected.
func kindOf(obj projection.Object) (projection.Kind, bool) {
	return projection.ForGVK(obj.GetObjectKind().GroupVersionKind())
}

func keyOf(obj projection.Object) (key, bool) {
	kind, ok := kindOf(obj)
	return key{kind.Resource, obj.GetName()}, ok
}

// workload reports whether a decision is made about the object, so that it is in some clusters by itself.
func workload(obj projection.Object) bool {
	kind, ok := kindOf(obj)
	return ok && kind.Workload && !kind.Mirror(obj)
}

func newIndex(from objects) *index {
	root := from.root
	x := &index{
		byKey: map[key]projection.Object{}, byOwner: map[types.UID][]projection.Object{},
		referrers: map[key][]projection.Object{}, followers: map[key][]projection.Object{},
	}
	x.sorted = slices.SortedFunc(slices.Values(from.others), func(a, b projection.Object) int {
		return cmp.Or(cmp.Compare(a.GetObjectKind().GroupVersionKind().Kind, b.GetObjectKind().GroupVersionKind().Kind),
			cmp.Compare(a.GetName(), b.GetName()))
	})
	if !slices.ContainsFunc(x.sorted, func(o projection.Object) bool { return o.GetUID() == root.GetUID() }) {
		x.sorted = append(x.sorted, root) // made after the list was read, or of a kind that is not listed
	}
	for _, obj := range x.sorted {
		x.add(obj)
	}
	for _, cluster := range from.clusters {
		x.joined = append(x.joined, cluster.Name)
	}
	return x
}

func (x *index) add(obj projection.Object) {
	for _, owner := range obj.GetOwnerReferences() {
		x.byOwner[owner.UID] = append(x.byOwner[owner.UID], obj)
	}
	kind, ok := kindOf(obj)
	if !ok {
		return
	}
	x.byKey[key{kind.Resource, obj.GetName()}] = obj
	if workload(obj) {
		x.workloads = append(x.workloads, obj)
	}
	if kind.Mirror(obj) {
		return // the workload behind it says what it needs
	}
	for _, ref := range kind.References(obj) {
		at := key{ref.Resource, ref.Name}
		x.referrers[at] = append(x.referrers[at], obj)
	}
	for _, ref := range kind.Follows(obj) {
		at := key{ref.Resource, ref.Name}
		x.followers[at] = append(x.followers[at], obj)
	}
}

// owned returns what belongs to the object: what names it as its controller, or as its owner if that has no controller.
func (x *index) owned(obj projection.Object) []projection.Object {
	return slices.DeleteFunc(slices.Clone(x.byOwner[obj.GetUID()]), func(o projection.Object) bool {
		controller := metav1.GetControllerOf(o)
		return controller != nil && controller.UID != obj.GetUID()
	})
}

// needing returns the workloads that need an object beside them, directly or through something else that they need. It is how a syncer
// finds the clusters that an object belongs into.
func (x *index) needing(obj projection.Object) []projection.Object {
	seen := map[types.UID]bool{}
	found := map[types.UID]projection.Object{}
	var visit func(projection.Object)
	visit = func(obj projection.Object) {
		if seen[obj.GetUID()] {
			return
		}
		seen[obj.GetUID()] = true
		if workload(obj) {
			found[obj.GetUID()] = obj
			return
		}
		for _, next := range x.above(obj) {
			visit(next.object)
		}
	}
	visit(obj)
	return slices.SortedFunc(maps.Values(found), func(a, b projection.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// link leads from one object to another.
type link struct {
	relation Relation
	object   projection.Object
}

// above returns what has the object beside it: what refers to it, what it selects or follows, and all workloads for what belongs to a
// whole namespace.
func (x *index) above(obj projection.Object) []link {
	kind, ok := kindOf(obj)
	if !ok {
		return nil
	}
	var out []link
	for _, referrer := range x.referrers[key{kind.Resource, obj.GetName()}] {
		out = append(out, link{NeededBy, referrer})
	}
	general := obj.GetObjectKind().GroupVersionKind() == namespaceGVK || kind.General(obj)
	for _, w := range x.workloads {
		switch {
		case general:
			out = append(out, link{Concerns, w})
		case selects(obj, w):
			out = append(out, link{LeadsTo, w})
		}
	}
	for _, ref := range kind.Follows(obj) {
		if followed := x.byKey[key{ref.Resource, ref.Name}]; followed != nil {
			out = append(out, link{LeadsTo, followed})
		}
	}
	return out
}

// selects reports whether an object selects pods of a workload.
func selects(obj, workload projection.Object) bool {
	kind, known := kindOf(obj)
	of, ok := kindOf(workload)
	return known && ok && kind.Selects(obj, of, workload)
}

// finished reports whether a workload has run to its end, so that it holds nothing beside it any more.
func finished(obj projection.Object) bool {
	kind, ok := kindOf(obj)
	return ok && kind.Workload && kind.Demand(obj).Finished
}

// clustersOf returns the clusters that an object is in: those of a decision about it, of the pods that it shows, or of the workloads that
// need it.
func (x *index) clustersOf(obj projection.Object) []string {
	kind, known := kindOf(obj)
	shares := map[string]bool{}
	switch {
	case known && kind.Mirror(obj):
		for _, cluster := range shownFrom(x, obj) {
			shares[cluster] = true
		}
	case len(identity.DecisionOf(obj)) > 0 || known && kind.Workload:
		for cluster := range identity.DecisionOf(obj) {
			shares[cluster] = true
		}
		for cluster, status := range identity.BreakdownOf(obj) {
			shares[cluster] = shares[cluster] || status.Replicas > 0
		}
	case known:
		if ok, _ := kind.Projectable(obj); !ok {
			return nil
		}
		for _, w := range x.needing(obj) {
			if finished(w) {
				continue
			}
			for cluster := range identity.DecisionOf(w) {
				shares[cluster] = true
			}
		}
	}
	maps.DeleteFunc(shares, func(_ string, in bool) bool { return !in })
	if known && !kind.Workload && !kind.Divided && !kind.Mirror(obj) {
		x.pinned(obj, shares)
	}
	return slices.Sorted(maps.Keys(shares))
}

// pinned adds the clusters that an object is pinned to which goes where it is needed.
func (x *index) pinned(obj projection.Object, shares map[string]bool) {
	text, ok := obj.GetAnnotations()[manifoldv1alpha1.AnnotationClusters]
	if !ok || obj.GetNamespace() == "" {
		return
	}
	pin, err := manifoldv1alpha1.ParsePin(text)
	if err != nil {
		return
	}
	for _, name := range append(slices.Clone(pin.Names), x.joined...) {
		if pin.Selects(name) {
			shares[name] = true
		}
	}
}
