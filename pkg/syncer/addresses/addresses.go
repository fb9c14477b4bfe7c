// Package addresses tells which addresses from outside lead to the workloads of a cluster, and keep their last replicas there: those of Services of
// type LoadBalancer, those of Ingresses, and those of Gateways.
//
// An address leaves the status of its object before the replicas behind it go. That it has left, and when, the object itself says, so whoever holds
// the shard after a restart goes on counting. Nothing is waited for where no address is.
package addresses

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Options say what is asked about addresses.
type Options struct {
	*trust.Cluster
	Demand *demand.Graph
	// Drain returns how long the policy of a workload has its last replicas stay; false if it says nothing. It may be nil.
	Drain func(kind projection.Kind, above projection.Object) (time.Duration, bool)
	// Gateways returns those of the Gateway API that the cluster has. It may be nil.
	Gateways func() []Gateway
	// Clock is for tests; nil is the real one.
	Clock clock.PassiveClock
}

// Addresses are those of one cluster.
type Addresses struct{ Options }

// New returns what tells of the addresses of a cluster.
func New(o Options) *Addresses {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Addresses{o}
}

// outside are the kinds whose objects have addresses.
var outside = []schema.GroupVersionResource{identity.Services, identity.Ingresses}

// Has reports whether objects that are served as a resource have addresses.
func Has(resource schema.GroupVersionResource) bool { return slices.Contains(outside, resource) }

// Keeping returns the address that keeps the last replicas of a workload in this cluster longest, nil if none does.
func (a *Addresses) Keeping(w identity.Workload) *moves.Address {
	all := a.ofGateways(w)
	for _, o := range a.leading(w) {
		if found := a.of(o, w); found != nil {
			all = append(all, found)
		}
	}
	var out *moves.Address
	for _, found := range all {
		if out == nil || longer(found, out) {
			out = found
		}
	}
	return out
}

// longer reports whether one address is used longer than another: those that have not left yet longest.
func longer(one, other *moves.Address) bool {
	if one.Until.IsZero() || other.Until.IsZero() {
		return one.Until.IsZero() && !other.Until.IsZero()
	}
	return one.Until.After(other.Until)
}

// of returns the address of an object that keeps the last replicas of a workload in this cluster, nil if none does.
func (a *Addresses) of(o object, w identity.Workload) *moves.Address {
	found := a.Published(o.kind, o.above)
	drain := a.drain(o.above, w)
	if len(found) == 0 || a.stays(a.behind(o)) {
		return nil
	}
	return a.keeping(found[0], o.kind.GVK.Kind+" "+o.above.GetName(), drain, identity.BreakdownOf(o.above)[a.Name].Withdrawal)
}

// keeping returns an address as it keeps the last replicas behind it, nil if it does not any more.
func (a *Addresses) keeping(address, of string, drain time.Duration, last summary.Withdrawal) *moves.Address {
	out := &moves.Address{Address: address, Of: of}
	switch {
	case drain == 0:
		return nil
	case last.Out():
		now := a.Clock.Now()
		remaining := last.Remaining(drain, now)
		if remaining == 0 {
			return nil
		}
		out.Withdrawn, out.Until = last.Withdrawn.Time, last.Withdrawn.Add(drain)
		if latest := now.Add(remaining); latest.Before(out.Until) {
			out.Until = latest
		}
	case !last.Alone.IsZero():
		out.Alone = last.Alone.Add(summary.Successor)
	}
	return out
}

// Published returns the addresses that an object has in this cluster, as far as that counts.
func (a *Addresses) Published(kind projection.Kind, above projection.Object) []string {
	summarised, ok := summary.ForResource(kind.Resource)
	if !ok || above.GetDeletionTimestamp() != nil {
		return nil
	}
	live := a.ProjectionOf(kind, above)
	if live == nil || live.GetDeletionTimestamp() != nil || len(summarised.Addresses(live)) == 0 {
		return nil
	}
	sane, _ := summarised.Sane(above, live, summary.Bounds{Now: metav1.NewTime(a.Clock.Now())})
	return summarised.Addresses(sane)
}

// drain is how long the last replicas of a workload stay behind an address of an object.
func (a *Addresses) drain(above metav1.Object, w identity.Workload) time.Duration {
	if drain, said := v1alpha1.DrainOf(above.GetAnnotations()); said {
		return drain
	}
	if a.Drain != nil {
		if drain, said := a.Drain(w.Kind, w.Object); said {
			return drain
		}
	}
	return v1alpha1.DefaultDrain
}

// Leaving reports whether none of the workloads behind the addresses of an object is to run in this cluster any more, and whether the last replicas
// of one of them are to end once the addresses have left the status.
func (a *Addresses) Leaving(kind projection.Kind, above projection.Object) (leaves, asks bool) {
	behind := a.behind(object{kind, above})
	if len(behind) == 0 || a.stays(behind) {
		return false, false
	}
	return true, slices.ContainsFunc(behind, func(w identity.Workload) bool { return a.States.Of(w.Key()).Addressed })
}

// Unserved reports whether workloads are behind the addresses of an object, and nothing of any is ready in this cluster. Of what has no numbers that is not
// known, and it counts as ready.
func (a *Addresses) Unserved(kind projection.Kind, above projection.Object) bool {
	behind := a.behind(object{kind, above})
	return len(behind) > 0 && !a.ready(behind)
}

// ready reports whether anything of any of the workloads is ready in this cluster, or may be.
func (a *Addresses) ready(workloads []identity.Workload) bool {
	return slices.ContainsFunc(workloads, func(w identity.Workload) bool {
		summarised, ok := summary.ForResource(w.Kind.Resource)
		if !ok || !summarised.Breakdown {
			return true
		}
		live := a.ProjectionOf(w.Kind, w.Object)
		return live != nil && summarised.Counts(live).Ready > 0
	})
}

// stays reports whether any of the workloads is to run in this cluster.
func (a *Addresses) stays(workloads []identity.Workload) bool {
	return slices.ContainsFunc(workloads, func(w identity.Workload) bool {
		share, decided := identity.DecisionOf(w)[a.Name]
		demand := w.Kind.Demand(w.Object)
		counted := demand.Ordinals || demand.Division == placement.Divisible
		return decided && (share.Replicas > 0 || !counted) && !demand.Finished && w.Kind.Lives(w.Object)
	})
}

// object is one that may have addresses.
type object struct {
	kind  projection.Kind
	above projection.Object
}

// leading returns what leads to a workload in this cluster, and may have addresses, in a stable order.
func (a *Addresses) leading(w identity.Workload) []object {
	var out []object
	for _, key := range a.Leading(w) {
		if kind, ok := projection.ForResource(key.Resource); ok {
			if above := a.Demand.Get(key); above != nil {
				out = append(out, object{kind, above})
			}
		}
	}
	return out
}

// Leading returns the Services that select a workload, and the Ingresses that lead to these, each once.
func (a *Addresses) Leading(w identity.Workload) []identity.Key {
	services, _ := projection.ForResource(identity.Services)
	ingresses, _ := projection.ForResource(identity.Ingresses)
	var out []identity.Key
	for _, service := range a.Demand.ObjectsIn(identity.Services, w.GetNamespace()) {
		if !a.selects(service, w) {
			continue
		}
		key := identity.KeyOf(services, service)
		out = append(out, key)
		for _, ingress := range a.Demand.Following(identity.Ingresses, key) {
			out = append(out, identity.KeyOf(ingresses, ingress))
		}
	}
	slices.SortFunc(out, func(x, y identity.Key) int { return cmp.Compare(x.String(), y.String()) })
	return slices.Compact(out)
}

// behind returns the workloads that an object leads to in this cluster. Those that Services of an Ingress lead to may be in it several times.
func (a *Addresses) behind(o object) []identity.Workload {
	if o.kind.Resource == identity.Services {
		return slices.DeleteFunc(a.Demand.WorkloadsIn(o.above.GetNamespace()), func(w identity.Workload) bool { return !a.selects(o.above, w) })
	}
	services, _ := projection.ForResource(identity.Services)
	var out []identity.Workload
	for _, ref := range o.kind.Follows(o.above) {
		if service := a.Demand.Get(identity.KeyOfReference(ref)); service != nil {
			out = append(out, a.behind(object{services, service})...)
		}
	}
	return out
}

// selects reports whether a Service selects the pods of a workload in this cluster.
func (a *Addresses) selects(service projection.Object, w identity.Workload) bool {
	services, _ := projection.ForResource(identity.Services)
	return slices.ContainsFunc(a.Demand.Versions.For(w.Kind, w.Object, a.Name), func(version projection.Object) bool {
		return services.Selects(service, w.Kind, version)
	})
}
