package summary

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Kind is how the status of objects of one kind is made of those of the clusters.
type Kind struct {
	// Resource is what the API serves the kind as.
	Resource schema.GroupVersionResource
	// Breakdown reports whether the annotation manifold.dev/status says how the object fares in each cluster.
	Breakdown bool

	summarise func(out Object, from Input)
	count     func(live Object) ClusterStatus
	restore   func(last ClusterStatus) Object
	observed  func(live Object) bool
	settled   func(live Object) bool
	missing   func(live Object) placement.Refusal
	history   func(in Object) History
	collide   func(out Object, collisions int32)
	rollout   func(in Object, share placement.Share, live Object) Rollout
	turn      func(in Object, lives map[string]Object, cluster string) (behind []string)
	sane      func(in, live Object, bounds Bounds) (Object, []string)
	addresses func(live Object) []string
	without   func(out Object, gone func(addresses ...string) bool)
}

// row makes a Kind of functions that are typed by the kind's Go type, so that only this function converts.
type row[T any, P interface {
	*T
	Object
}] struct {
	resource schema.GroupVersionResource
	// summarise sets the status of out, a copy of the object with the status that it has now.
	summarise func(out P, from Input)
	// count reads the counters for the breakdown, and restore makes of them what a silent cluster is remembered by. Both are nil for a
	// kind without a breakdown.
	count   func(live P) ClusterStatus
	restore func(out P, last ClusterStatus)
	// observed reports whether the controllers below have seen the object as it is; nil if nothing below acts on it.
	observed func(live P) bool
	// settled reports whether what a cluster says is what it will say until somebody changes something; nil if it always is.
	settled func(live P) bool
	// missing tells how many pods there should be beside those that are there, and since when and why they are not made, as far as the status
	// says so; nil for a kind of which it does not matter.
	missing func(live P) placement.Refusal
	// history tells what the kind's ControllerRevisions keep; nil for a kind that has none.
	history func(in P) History
	// collide sets how often the name of a revision was taken by another.
	collide func(out P, collisions int32)
	// rollout tells how far a cluster's share is; nil for a kind whose shares do not wait for each other.
	rollout func(in P, share placement.Share, live P) Rollout
	// turn returns the clusters that a cluster is to update its pods after; nil for a kind whose clusters do not wait for each other. Lives
	// are what the clusters of the decision have of in, nil for one that is not known.
	turn func(in P, lives map[string]P, cluster string) (behind []string)
	// sane takes what cannot be out of a cluster's report of in. Out is its own to change, though not what it points to.
	sane func(in, out P, d *doubts)
	// addresses are those at which an object is reached from outside, and without takes those out of a status that are gone. Both are nil for a kind
	// that has none.
	addresses func(live P) []string
	without   func(out P, gone func(addresses ...string) bool)
}

func (r row[T, P]) build() Kind {
	kind := Kind{
		Resource:  r.resource,
		Breakdown: r.count != nil,
		summarise: func(out Object, from Input) { r.summarise(out.(P), from) },
		observed:  func(Object) bool { return true },
		settled:   func(Object) bool { return true },
	}
	if r.count != nil {
		kind.count = func(live Object) ClusterStatus { return r.count(live.(P)) }
		kind.restore = func(last ClusterStatus) Object {
			out := P(new(T))
			r.restore(out, last)
			return out
		}
	}
	if r.observed != nil {
		kind.observed = func(live Object) bool { return r.observed(live.(P)) }
	}
	if r.settled != nil {
		kind.settled = func(live Object) bool { return r.settled(live.(P)) }
	}
	kind.missing = func(Object) placement.Refusal { return placement.Refusal{} }
	if r.missing != nil {
		kind.missing = func(live Object) placement.Refusal { return r.missing(live.(P)) }
	}
	if r.history != nil {
		kind.history = func(in Object) History { return r.history(in.(P)) }
		kind.collide = func(out Object, collisions int32) { r.collide(out.(P), collisions) }
	}
	if r.turn != nil {
		kind.turn = func(in Object, lives map[string]Object, cluster string) []string {
			typed := make(map[string]P, len(lives))
			for name, live := range lives {
				typed[name], _ = live.(P)
			}
			return r.turn(in.(P), typed, cluster)
		}
	}
	kind.sane = func(in, live Object, bounds Bounds) (Object, []string) {
		out, d := P(new(T)), doubts{Bounds: bounds}
		*out = *live.(P)
		r.sane(in.(P), out, &d)
		if len(d.texts) == 0 && !d.worded {
			return live, nil
		}
		return out, d.texts
	}
	if r.addresses != nil {
		kind.addresses = func(live Object) []string { return r.addresses(live.(P)) }
		kind.without = func(out Object, gone func(addresses ...string) bool) { r.without(out.(P), gone) }
	}
	if r.rollout != nil {
		kind.rollout = func(in Object, share placement.Share, live Object) Rollout { return r.rollout(in.(P), share, live.(P)) }
	}
	return kind
}

// kinds is the table of all kinds: of each row that a file of this package declares, in the order of their resources. Nothing may change it after
// that.
var kinds []Kind

// register adds the row of a kind to the table, while the package is initialised.
func register[T any, P interface {
	*T
	Object
}](r row[T, P]) row[T, P] {
	kinds = append(kinds, r.build())
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return r
}

// Kinds returns every kind that is summarised.
func Kinds() []Kind { return slices.Clone(kinds) }

// ForResource returns the kind that is served as that resource.
func ForResource(resource schema.GroupVersionResource) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Resource == resource })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// Summarise returns a copy of the object whose status is made of what the clusters report. It does not change in.
func (k Kind) Summarise(in Object, from Input) Object {
	out := in.DeepCopyObject().(Object)
	k.summarise(out, from)
	return out
}

// Observed reports whether the controllers of a cluster have seen the object there as it is.
func (k Kind) Observed(live Object) bool { return k.observed(live) }

// Counts reads the counters of an object in a cluster.
func (k Kind) Counts(live Object) ClusterStatus { return k.count(live) }

// Missing tells how many pods of an object a cluster should have beside those that it has, and since when and why they are not made, as far
// as the status there says so.
func (k Kind) Missing(live Object) placement.Refusal { return k.missing(live) }

// Rollout is how far a cluster is with bringing its share of the replicas to the template.
type Rollout struct {
	// Ahead tells that replicas are to be updated and none is yet, so that it may still wait.
	Ahead bool
	// Done tells that all that are to be updated are, and that all serve.
	Done bool
}

// Paced reports whether the shares of a workload of the kind roll out one after another.
func (k Kind) Paced() bool { return k.rollout != nil }

// RolloutOf tells how far a cluster is that has live for its share of in.
func (k Kind) RolloutOf(in Object, share placement.Share, live Object) Rollout {
	return k.rollout(in, share, live)
}

// TakesTurns reports whether clusters update their pods one after another, as far as the whole may not have more of them out of service.
func (k Kind) TakesTurns() bool { return k.turn != nil }

// Behind returns the clusters that one is to update its pods after, none if it may begin or has. Lives are what the clusters of the decision
// have of in, nil for one of which that is not known.
func (k Kind) Behind(in Object, lives map[string]Object, cluster string) []string {
	return k.turn(in, lives, cluster)
}

// Settled reports whether what a cluster says of the object is what it will say until somebody changes something. That is what people and
// tools wait for; what comes before it may wait for more of its kind.
func (k Kind) Settled(live Object) bool { return k.settled(live) }

// LastKnown is the report of a cluster that nobody can ask, as the breakdown kept it.
func (k Kind) LastKnown(last ClusterStatus) Report {
	return Report{Generation: last.Generation, Revision: last.Revision, Target: last.Target, Lacks: last.Lacks, Stale: true, Problem: last.Problem, Refused: last.Refused, Live: k.restore(last)}
}
