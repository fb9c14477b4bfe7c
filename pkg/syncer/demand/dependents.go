package demand

import (
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Dependents returns what a workload needs beside it, in the order in which it should be there: the namespace first.
func (g *Graph) Dependents(w identity.Workload) []identity.Key {
	d := dependents{graph: g, seen: map[identity.Key]bool{}}
	d.add(identity.Key{Resource: identity.Namespaces, Name: w.GetNamespace()})
	for _, ref := range w.Kind.References(w.Object) {
		d.visit(identity.KeyOfReference(ref))
	}
	for _, key := range g.ClaimsFor(w) {
		d.visit(key)
	}
	for _, kind := range projection.Kinds() {
		if !kind.SelectsPods() && !kind.MayBeGeneral() {
			continue
		}
		for _, obj := range g.ObjectsIn(kind.Resource, w.GetNamespace()) {
			if kind.Selects(obj, w.Kind, w.Object) || kind.General(obj) {
				d.visit(identity.KeyOf(kind, obj))
			}
		}
	}
	return d.keys
}

// dependents gathers what an object needs, directly or not. What something needs comes before it.
type dependents struct {
	graph *Graph
	seen  map[identity.Key]bool
	keys  []identity.Key
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
		if obj := d.graph.Get(key); obj != nil {
			for _, ref := range kind.References(obj) {
				d.visit(identity.KeyOfReference(ref))
			}
		}
	}
	d.keys = append(d.keys, key)
	for _, kind := range projection.Kinds() {
		for _, follower := range d.graph.Following(kind.Resource, key) {
			d.visit(identity.KeyOf(kind, follower))
		}
	}
}

// Bounds returns what bounds the pods of a workload, and the claims that must be there before its controller makes others in their place.
func (g *Graph) Bounds(w identity.Workload) []identity.Key {
	out := g.ClaimsFor(w)
	for _, kind := range projection.Kinds() {
		if !kind.Bounds {
			continue
		}
		for _, obj := range g.ObjectsIn(kind.Resource, w.GetNamespace()) {
			if kind.General(obj) || kind.Selects(obj, w.Kind, w.Object) {
				out = append(out, identity.KeyOf(kind, obj))
			}
		}
	}
	return out
}

// Linked returns an object that is no workload and what its demand is passed on to: what it refers to, or did in these versions, and what
// follows it.
func (g *Graph) Linked(kind projection.Kind, key identity.Key, versions ...projection.Object) []identity.Key {
	d := dependents{graph: g, seen: map[identity.Key]bool{}}
	for _, version := range versions {
		if version == nil {
			continue
		}
		for _, ref := range kind.References(version) {
			d.visit(identity.KeyOfReference(ref))
		}
	}
	d.visit(key)
	return d.keys
}

// UsedBy returns what pods use, or what makes them, with what follows that. Unlike a workload, they may be made by an earlier template.
func (g *Graph) UsedBy(kind projection.Kind, pods projection.Object) []identity.Key {
	d := dependents{graph: g, seen: map[identity.Key]bool{}}
	for _, ref := range kind.References(pods) {
		d.visit(identity.KeyOfReference(ref))
	}
	for _, selecting := range projection.Kinds() {
		if !selecting.SelectsPods() {
			continue
		}
		for _, obj := range g.ObjectsIn(selecting.Resource, pods.GetNamespace()) {
			if selecting.Selects(obj, kind, pods) {
				d.visit(identity.KeyOf(selecting, obj))
			}
		}
	}
	return d.keys
}
