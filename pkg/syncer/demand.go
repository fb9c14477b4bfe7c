package syncer

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Placed returns the names of the workloads whose decision names a cluster and that have neither run to their end nor are being deleted, sorted: kind, namespace and name, except for Deployments,
// which are so frequent that they go without their kind.
func (u *Upstream) Placed(cluster string) []string {
	var out []string
	for _, kind := range projection.Workloads() {
		for _, obj := range u.Stores[kind.Resource].List() {
			o := obj.(projection.Object)
			if _, placed := identity.DecisionOf(o)[cluster]; !placed || kind.Mirror(o) || kind.Demand(o).Finished || o.GetDeletionTimestamp() != nil {
				continue
			}
			name := o.GetNamespace() + "/" + o.GetName()
			if kind.Resource != deploymentResource {
				name = kind.GVK.Kind + " " + name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// part returns what a cluster should hold of an object: false if nothing. A workload says so itself; everything else is wanted where a
// workload that needs it is.
func (u *Upstream) part(kind projection.Kind, obj projection.Object, cluster string) (projection.Part, bool) {
	if kind.Mirror(obj) {
		return projection.Part{}, false
	}
	if kind.Workload {
		decision := identity.DecisionOf(obj)
		share, ok := decision[cluster]
		return projection.Part{Share: share, Decision: decision}, ok
	}
	n := needs{
		upstream: u, seen: map[identity.Key]bool{}, cluster: cluster,
		is: func(w identity.Workload) bool { return u.runs(w, cluster) && u.usedHere(w, obj, cluster) },
	}
	if n.visit(identity.KeyOf(kind, obj)); !n.found {
		return projection.Part{}, false
	}
	if !kind.Divided {
		return projection.Part{}, true
	}
	placed := placedOf(u.needing(identity.KeyOf(kind, obj)))
	if len(placed) == 0 {
		placed = u.placedShown(kind, obj)
	}
	return projection.Part{Workloads: placed, LimitRanges: u.limitRanges(obj.GetNamespace())}, true
}

// pinnedTo reports whether an object that goes where it is needed is pinned to a cluster by itself, where it then is besides. A pin on a
// namespace is for what is in it, and what is divided needs workloads to be divided by.
func pinnedTo(kind projection.Kind, obj projection.Object, cluster string) bool {
	if kind.Workload || kind.Divided || !kind.Namespaced || kind.Mirror(obj) {
		return false
	}
	text, pinned := obj.GetAnnotations()[v1alpha1.AnnotationClusters]
	if !pinned {
		return false
	}
	pin, err := v1alpha1.ParsePin(text)
	return err == nil && pin.Selects(cluster) // a bad one is refused when it is written
}

// pinnedIn reports whether anything in a namespace is sent to a cluster by itself.
func (u *Upstream) pinnedIn(namespace, cluster string) bool {
	return slices.ContainsFunc(projection.Kinds(), func(kind projection.Kind) bool {
		return slices.ContainsFunc(u.ObjectsIn(kind.Resource, namespace), func(obj projection.Object) bool {
			return pinnedTo(kind, obj, cluster) || u.settledIn(kind, obj, cluster)
		})
	})
}

// settledIn reports whether a volume claim that nothing uses is to be in a cluster, by a decision of its own. Once it is elsewhere, for somebody
// who uses it, it stays there.
func (u *Upstream) settledIn(kind projection.Kind, obj projection.Object, cluster string) bool {
	if kind.Resource != claimResource || kind.Mirror(obj) {
		return false
	}
	if _, decided := identity.DecisionOf(obj)[cluster]; !decided {
		return false
	}
	breakdown, err := summary.ParseBreakdown(obj.GetAnnotations()[v1alpha1.AnnotationStatus])
	if _, has := breakdown[cluster]; err != nil || len(breakdown) > 0 && !has {
		return false
	}
	return !u.usedSomewhere(kind, obj)
}

// usedSomewhere reports whether anything that is placed needs an object.
func (u *Upstream) usedSomewhere(kind projection.Kind, obj projection.Object) bool {
	return u.anyNeeding(identity.KeyOf(kind, obj), func(w identity.Workload) bool {
		return len(identity.DecisionOf(w)) > 0 && !w.Kind.Demand(w.Object).Finished
	})
}

// placedOf are those of the workloads that run somewhere and have not finished.
func placedOf(workloads []identity.Workload) []projection.Placed {
	var out []projection.Placed
	for _, w := range workloads {
		demand, decision := w.Kind.Demand(w.Object), identity.DecisionOf(w)
		if len(decision) > 0 && !demand.Finished {
			out = append(out, projection.Placed{Demand: demand, Decision: decision})
		}
	}
	return out
}

func (u *Upstream) limitRanges(namespace string) []*corev1.LimitRange {
	var out []*corev1.LimitRange
	for _, obj := range u.ObjectsIn(corev1.SchemeGroupVersion.WithResource("limitranges"), namespace) {
		out = append(out, obj.(*corev1.LimitRange))
	}
	slices.SortFunc(out, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// bounds returns what bounds the pods of a workload, and the claims that must be there before its controller makes others in their place.
func (u *Upstream) bounds(w identity.Workload) []identity.Key {
	out := u.ClaimsFor(w)
	for _, kind := range projection.Kinds() {
		if !kind.Bounds() {
			continue
		}
		for _, obj := range u.ObjectsIn(kind.Resource, w.GetNamespace()) {
			if kind.General(obj) || kind.Selects(obj, w.Kind, w.Object) {
				out = append(out, identity.KeyOf(kind, obj))
			}
		}
	}
	return out
}

// runs reports whether a cluster should run a workload or still does: what the pods need stays until they have left.
func (u *Upstream) runs(w identity.Workload, cluster string) bool {
	if _, decided := identity.DecisionOf(w)[cluster]; decided && !w.Kind.Demand(w.Object).Finished {
		return true
	}
	s, ok := u.Syncer(cluster)
	return ok && s.projectionOf(w.Kind, w.Object) != nil
}

// needing returns the workloads that need an object beside them, by themselves or through something else that they need.
func (u *Upstream) needing(key identity.Key) []identity.Workload {
	found := map[identity.Key]identity.Workload{}
	u.anyNeeding(key, func(w identity.Workload) bool { found[w.Key()] = w; return false })
	out := make([]identity.Workload, 0, len(found))
	for _, w := range found {
		out = append(out, w)
	}
	return out
}

// anyNeeding reports whether any of the workloads that need an object is such as asked for. It looks at no more than it has to, since all of
// a large namespace may need it, and may ask about one several times.
func (u *Upstream) anyNeeding(key identity.Key, is func(identity.Workload) bool) bool {
	n := needs{upstream: u, seen: map[identity.Key]bool{}, is: is}
	n.visit(key)
	return n.found
}

// needs looks for a workload that an object is needed by.
type needs struct {
	upstream *Upstream
	seen     map[identity.Key]bool
	is       func(identity.Workload) bool
	// cluster is one whose pods, as they are shown, need what selects them by their labels; "" for none.
	cluster string
	found   bool
}

func (n *needs) visit(key identity.Key) {
	if n.found || n.seen[key] {
		return
	}
	n.seen[key] = true
	if key.Resource == namespaceResource {
		n.add(n.upstream.WorkloadsIn(key.Name))
		return
	}
	n.visitReferrers(key)
	kind, ok := projection.ForResource(key.Resource)
	obj := n.upstream.Get(key)
	if !ok || obj == nil {
		return
	}
	if kind.General(obj) {
		n.add(n.upstream.WorkloadsIn(key.Namespace))
		return
	}
	if kind.SelectsPods() {
		for _, w := range n.upstream.WorkloadsIn(key.Namespace) {
			if kind.Selects(obj, w.Kind, w.Object) {
				n.add([]identity.Workload{w})
			}
		}
		n.found = n.found || n.cluster != "" && n.upstream.SelectedIn(kind, obj, n.cluster, 1) > 0
	}
	for _, ref := range kind.Follows(obj) {
		if w := n.upstream.Claimant(key, identity.KeyOfReference(ref)); w != nil {
			n.add([]identity.Workload{*w})
			continue
		}
		n.visit(identity.KeyOfReference(ref))
	}
}

func (n *needs) add(workloads []identity.Workload) {
	n.found = n.found || slices.ContainsFunc(workloads, n.is)
}

// visitReferrers looks at the objects that name key.
func (n *needs) visitReferrers(key identity.Key) {
	for _, kind := range projection.Kinds() {
		for _, obj := range n.upstream.Referring(kind.Resource, key) {
			if kind.Workload {
				n.add([]identity.Workload{{Kind: kind, Object: obj}})
			} else {
				n.visit(identity.KeyOf(kind, obj))
			}
		}
	}
}

// dependents returns what a workload needs beside it, in the order in which it should be there: the namespace first.
func (u *Upstream) dependents(w identity.Workload) []identity.Key {
	d := dependents{upstream: u, seen: map[identity.Key]bool{}}
	d.add(identity.Key{Resource: namespaceResource, Name: w.GetNamespace()})
	for _, ref := range w.Kind.References(w.Object) {
		d.visit(identity.KeyOfReference(ref))
	}
	for _, key := range u.ClaimsFor(w) {
		d.visit(key)
	}
	for _, kind := range projection.Kinds() {
		if !kind.SelectsPods() && !kind.MayBeGeneral() {
			continue
		}
		for _, obj := range u.ObjectsIn(kind.Resource, w.GetNamespace()) {
			if kind.Selects(obj, w.Kind, w.Object) || kind.General(obj) {
				d.visit(identity.KeyOf(kind, obj))
			}
		}
	}
	return d.keys
}

// dependents gathers what an object needs, directly or not. What something needs comes before it.
type dependents struct {
	upstream *Upstream
	seen     map[identity.Key]bool
	keys     []identity.Key
}

func (d *dependents) add(key identity.Key) {
	d.seen[key] = true
	d.keys = append(d.keys, key)
}

func (d *dependents) visit(key identity.Key) {
	if d.seen[key] {
		return
	}
	d.seen[key] = true
	if kind, ok := projection.ForResource(key.Resource); ok {
		if obj := d.upstream.Get(key); obj != nil {
			for _, ref := range kind.References(obj) {
				d.visit(identity.KeyOfReference(ref))
			}
		}
	}
	d.keys = append(d.keys, key)
	for _, kind := range projection.Kinds() {
		for _, follower := range d.upstream.Following(kind.Resource, key) {
			d.visit(identity.KeyOf(kind, follower))
		}
	}
}
