package copies

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
)

// Gateways lead users from outside to Services, by routes. A copy of one stays in a cluster as long as users are led to its addresses, and a route as
// long as what it leads to runs there: both outlast the move that takes them away, as the replicas behind them do.

const gatewayGroup = "gateway.networking.k8s.io"

// GatewayResource is what Gateways are served as.
var GatewayResource = schema.GroupResource{Group: gatewayGroup, Resource: "gateways"}

// routeResources are what routes are served as.
var routeResources = []string{"httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes"}

func isRoute(resource schema.GroupResource) bool {
	return resource.Group == gatewayGroup && slices.Contains(routeResources, resource.Resource)
}

// Gateways returns those that a cluster has, with what its routes lead to from them.
func (a *Loops) Gateways(cluster string) []addresses.Gateway {
	if l := a.of(cluster); l != nil {
		return l.gateways()
	}
	return nil
}

// LookAtGateways has the Gateways of a cluster reported again, and looks at the routes that are to leave it: what runs behind them has changed.
func (a *Loops) LookAtGateways(cluster string) {
	l := a.of(cluster)
	if l == nil {
		return
	}
	for _, key := range l.keysOf(GatewayResource) {
		l.queue.Add(key)
		l.Above.Changed(key, false)
	}
	for _, resource := range routeResources {
		for _, key := range l.keysOf(schema.GroupResource{Group: gatewayGroup, Resource: resource}) {
			if _, above, _ := l.Above.Get(key); above == nil || !decided(identity.DecisionOf(above), cluster) {
				l.queue.Add(key)
			}
		}
	}
}

func decided[V any](decision map[string]V, cluster string) bool {
	_, is := decision[cluster]
	return is
}

// keysOf returns what the cluster has of a kind that is watched there.
func (l *Loop) keysOf(resource schema.GroupResource) []Key {
	l.mu.Lock()
	w := l.watches[resource]
	l.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.keys(resource)
}

// liveOf returns what the watch shows of an object that is ours, nil for none.
func (l *Loop) liveOf(key Key) *unstructured.Unstructured {
	l.mu.Lock()
	w := l.watches[key.Resource]
	l.mu.Unlock()
	if w == nil {
		return nil
	}
	live := w.get(key)
	if live == nil {
		return nil
	}
	if origin, owned := projection.OriginOf(live); !owned || origin.Namespace != key.Namespace || origin.Name != key.Name {
		return nil
	}
	return live
}

// gateways returns those that the cluster has for objects of the logical cluster, in a stable order.
func (l *Loop) gateways() []addresses.Gateway {
	keys := l.keysOf(GatewayResource)
	if len(keys) == 0 {
		return nil
	}
	leads := l.leads()
	slices.SortFunc(keys, func(x, y Key) int { return cmp.Compare(x.String(), y.String()) })
	var out []addresses.Gateway
	for _, key := range keys {
		if g, ok := l.gateway(key); ok {
			g.Services = leads[cache.ObjectName{Namespace: key.Namespace, Name: key.Name}]
			out = append(out, g)
		}
	}
	return out
}

// gateway returns one that the cluster has for an object of the logical cluster, without what it leads to.
func (l *Loop) gateway(key Key) (g addresses.Gateway, ok bool) {
	live := l.liveOf(key)
	_, above, _ := l.Above.Get(key)
	if live == nil || above == nil {
		return g, false
	}
	if origin, _ := projection.OriginOf(live); origin.UID != above.UID {
		return g, false
	}
	return addresses.Gateway{Above: above, Published: summary.GatewayAddresses(live)}, true
}

// leads returns the Services that routes of the cluster lead to, by Gateway.
func (l *Loop) leads() map[cache.ObjectName][]cache.ObjectName {
	out := map[cache.ObjectName][]cache.ObjectName{}
	for _, resource := range routeResources {
		for _, key := range l.keysOf(schema.GroupResource{Group: gatewayGroup, Resource: resource}) {
			live := l.liveOf(key)
			services := ledTo(live)
			for _, gateway := range parents(live) {
				out[gateway] = append(out[gateway], services...)
			}
		}
	}
	return out
}

// parents returns the Gateways that a route is for.
func parents(route *unstructured.Unstructured) []cache.ObjectName {
	if route == nil {
		return nil
	}
	return named(listAt(route.Object, "spec", "parentRefs"), route.GetNamespace(), gatewayGroup, "Gateway")
}

// ledTo returns the Services that a route leads to.
func ledTo(route *unstructured.Unstructured) []cache.ObjectName {
	if route == nil {
		return nil
	}
	var out []cache.ObjectName
	for _, rule := range listAt(route.Object, "spec", "rules") {
		if r, ok := rule.(map[string]any); ok {
			out = append(out, named(listAt(r, "backendRefs"), route.GetNamespace(), "", "Service")...)
		}
	}
	return out
}

// listAt returns the list in a field, nil if there is none.
func listAt(of map[string]any, fields ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(of, fields...)
	list, _ := value.([]any)
	return list
}

// named returns the objects of a kind that a list of references names. A reference that does not say of which kind it is means that one.
func named(list []any, namespace, group, kind string) []cache.ObjectName {
	var out []cache.ObjectName
	for _, item := range list {
		ref, _ := item.(map[string]any)
		says := func(field, otherwise string) string {
			if value, ok := ref[field].(string); ok {
				return value
			}
			return otherwise
		}
		name := cache.ObjectName{Namespace: says("namespace", namespace), Name: says("name", "")}
		if says("group", group) == group && says("kind", kind) == kind && name.Name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// drains says why a copy that is to leave the cluster stays a while, "" if it does not, and until when, zero if only a change ends that.
func (l *Loop) drains(seen look) (why string, until time.Time) {
	if !seen.movesAway() {
		return "", until
	}
	switch {
	case seen.unsure:
		return "it is not known yet which addresses lead to it", l.Clock.Now().Add(askAgain)
	case seen.kept != nil:
		return "it keeps its pods " + seen.kept.String(), seen.kept.Until
	case seen.key.Resource == GatewayResource:
		return l.gatewayDrains(seen.key)
	case isRoute(seen.key.Resource):
		return l.routeDrains(seen.live), until
	}
	return "", until
}

// movesAway reports whether an object is to be in other clusters.
func (seen look) movesAway() bool {
	return seen.above != nil && seen.above.DeletionTimestamp == nil && projection.Lives(seen.above) && len(identity.DecisionOf(seen.above)) > 0
}

// askAgain is when it is asked again what nobody could tell yet.
const askAgain = time.Second

// keep finds the address for whose sake a workload stays that has arrived elsewhere, and lets go of the one for which it stayed before.
func (l *Loop) keep(seen *look) {
	if seen.kind.Paths == nil || len(seen.kind.Versions) == 0 || l.Kept == nil {
		return
	}
	leaves := !seen.wanted && seen.live != nil && seen.arrived && seen.movesAway()
	key := identity.Key{Resource: seen.kind.Row(seen.kind.Versions[0]).Resource, Namespace: seen.key.Namespace, Name: seen.key.Name}
	address, known := l.Kept(l.cluster, key, leaves)
	if leaves {
		seen.kept, seen.unsure = address, !known
	}
}

// gatewayDrains is drains for a Gateway: its addresses leave the status first.
func (l *Loop) gatewayDrains(key Key) (why string, until time.Time) {
	g, ok := l.gateway(key)
	drain := l.drainOf(g)
	if !ok || len(g.Published) == 0 || drain == 0 {
		return "", until
	}
	withdrawal := identity.CopiesOf(g.Above)[l.cluster].Withdrawal
	if !withdrawal.Out() {
		return "it stays until its addresses have left the status", until
	}
	now := l.Clock.Now()
	if remaining := withdrawal.Remaining(drain, now); remaining > 0 {
		return "its addresses have left the status, and are used for a while more", now.Add(remaining)
	}
	return "", until
}

// routeDrains is drains for a route: without it, nothing that runs here is reached from a Gateway any more.
func (l *Loop) routeDrains(live *unstructured.Unstructured) (why string) {
	if l.Behind == nil {
		return ""
	}
	for _, parent := range parents(live) {
		g, ok := l.gateway(Key{GatewayResource, parent.Namespace, parent.Name})
		if ok && len(g.Published) > 0 && l.drainOf(g) > 0 && l.Behind(l.cluster, ledTo(live)).Runs {
			return "it stays as long as what it leads to runs here and is reached from outside"
		}
	}
	return ""
}

// drainOf is how long a Gateway stays whose addresses have left the status: as it says itself, or its policy.
func (l *Loop) drainOf(g addresses.Gateway) time.Duration {
	if g.Above == nil {
		return v1alpha1.DefaultDrain
	}
	if drain, said := v1alpha1.DrainOf(g.Above.Annotations); said {
		return drain
	}
	if l.Drain != nil {
		if drain, said := l.Drain(Key{GatewayResource, g.Above.Namespace, g.Above.Name}, g.Above); said {
			return drain
		}
	}
	return v1alpha1.DefaultDrain
}
