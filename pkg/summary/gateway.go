package summary

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/internal/text"
)

const (
	gatewayGroup = "gateway.networking.k8s.io"
	// mostAddresses, mostParents and mostOfParent are how many addresses a Gateway has at most, how many parents a route, and how many conditions one of
	// these, by the definitions of the kinds. A status beyond that would be refused as a whole.
	mostAddresses, mostParents, mostOfParent = 16, 32, 8
	// mostAddress is how many bytes an address of a Gateway has at most.
	mostAddress = 253
)

// join puts into the status of an object of the Gateway API what it has of each cluster, where that of other kinds has what is the same in all of them:
// the addresses of a Gateway, and what the parents of a route say. Clusters that the Gateway leaves count until their addresses have been withdrawn.
func join(out map[string]any, in *unstructured.Unstructured, all []said, from CustomInput) map[string]any {
	var field string
	var joined []any
	switch kind := in.GetKind(); {
	case in.GroupVersionKind().Group != gatewayGroup:
		return out
	case kind == "Gateway":
		field, joined = "addresses", joinAddresses(append(slices.Clone(all), leftIn(from)...), from)
	case isRoute(kind) && len(all) > 1:
		field, joined = "parents", joinParents(in, all, from.Now)
	default:
		return out
	}
	said := slices.ContainsFunc(all, func(s said) bool { return s.status[field] != nil })
	if len(joined) == 0 && !said {
		return out
	}
	if out == nil {
		out = map[string]any{}
	}
	out[field] = joined
	return out
}

// leftIn are what clusters say that an object leaves, in order.
func leftIn(from CustomInput) []said {
	var out []said
	for _, cluster := range slices.Sorted(maps.Keys(from.Reports)) {
		if !slices.Contains(from.Clusters, cluster) {
			status, _ := from.Reports[cluster].said()
			out = append(out, said{cluster, status})
		}
	}
	return out
}

func isRoute(kind string) bool {
	return slices.Contains([]string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"}, kind)
}

// GatewayAddresses returns the addresses that a Gateway has by its status, sorted and each once. Of one in a silent cluster there may be no more than
// that.
func GatewayAddresses(live *unstructured.Unstructured) []string {
	if live == nil {
		return nil
	}
	status, _ := live.Object["status"].(map[string]any)
	var out []string
	for _, a := range addressesOf(status) {
		out = append(out, a["value"].(string))
	}
	return distinct(out)
}

// addressesOf returns the addresses of the status of a Gateway that can be.
func addressesOf(status map[string]any) []map[string]any {
	list, _ := status["addresses"].([]any)
	var out []map[string]any
	for _, item := range list {
		if a, ok := item.(map[string]any); ok && gatewayAddress(a) {
			out = append(out, a)
		}
	}
	return out
}

// gatewayAddress reports whether an address can be one of its type. Of types that only an implementation knows it is a text.
func gatewayAddress(a map[string]any) bool {
	value, isText := a["value"].(string)
	of, typed := a["type"].(string)
	if _, said := a["type"]; said && !typed || !isText || value == "" || text.Line(value, mostAddress) != value {
		return false
	}
	switch of {
	case "", "IPAddress":
		return address(value, "")
	case "Hostname":
		return address("", value)
	}
	return text.Line(of, mostAddress) == of
}

// joinAddresses returns the addresses of all clusters but those that have withdrawn theirs, or do not show them yet, each once, in the order of the
// clusters.
func joinAddresses(all []said, from CustomInput) []any {
	out := []any{}
	for _, s := range all {
		if from.Withdrawals[s.cluster].Out() || from.Early[s.cluster] {
			continue
		}
		for _, a := range addressesOf(s.status) {
			known := slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, any(a)) })
			if !known && len(out) < mostAddresses {
				out = append(out, runtime.DeepCopyJSON(a))
			}
		}
	}
	return out
}

// parent is what one cluster says of a parent of a route.
type parent struct {
	said
	ref        map[string]any
	controller string
}

// is reports whether two clusters speak of the same parent.
func (p parent) is(other parent) bool {
	return p.controller == other.controller && reflect.DeepEqual(p.ref, other.ref)
}

// parentsOf returns the parents of a route of which a cluster says anything that can be.
func parentsOf(s said) []parent {
	list, _ := s.status["parents"].([]any)
	var out []parent
	for _, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		ref, hasRef := entry["parentRef"].(map[string]any)
		controller, hasController := entry["controllerName"].(string)
		p := parent{said: said{s.cluster, map[string]any{"conditions": []any{}}}, ref: ref, controller: controller}
		if !hasRef || !hasController || slices.ContainsFunc(out, p.is) {
			continue
		}
		if isConditions(entry["conditions"]) {
			p.status["conditions"] = fewConditions(conditionsOf(entry))
		}
		out = append(out, p)
	}
	return out
}

// fewConditions returns conditions as they may be shown, no more than one parent may have.
func fewConditions(all []map[string]any) []any {
	out := []any{}
	for _, c := range all {
		if c = saneCondition(c, true); c != nil && len(out) < mostOfParent {
			out = append(out, c)
		}
	}
	return out
}

// joinParents makes one parent of what the clusters say that know it. Those that do not say anything of it, as a cluster to which the route has just
// come, take nothing away: the requests that get in elsewhere find their way.
func joinParents(in *unstructured.Unstructured, all []said, now metav1.Time) []any {
	var kinds [][]parent
	for _, s := range all {
		for _, p := range parentsOf(s) {
			i := slices.IndexFunc(kinds, func(known []parent) bool { return known[0].is(p) })
			switch {
			case i >= 0:
				kinds[i] = append(kinds[i], p)
			case len(kinds) < mostParents:
				kinds = append(kinds, []parent{p})
			}
		}
	}
	before, _ := in.Object["status"].(map[string]any)
	out := []any{}
	for _, same := range kinds {
		entry := map[string]any{"parentRef": runtime.DeepCopyJSON(same[0].ref), "controllerName": same[0].controller}
		conditions := joinedConditions(same, parentsOf(said{"", before}), now)
		entry["conditions"] = conditions[:min(len(conditions), mostOfParent)]
		out = append(out, entry)
	}
	return out
}

// joinedConditions makes one condition of each type that clusters tell of a parent.
func joinedConditions(same, before []parent, now metav1.Time) []any {
	was := &unstructured.Unstructured{Object: map[string]any{}}
	if i := slices.IndexFunc(before, same[0].is); i >= 0 {
		was.Object["status"] = before[i].status
	}
	told := make([]said, 0, len(same))
	for _, p := range same {
		told = append(told, p.said)
	}
	return append([]any{}, commonConditions(was, told, now)...)
}

// inRoutes calls of with the conditions of each parent of a route, and of each listener of a Gateway, as they are.
func inRoutes(status map[string]any, of func(condition map[string]any)) {
	for _, field := range []string{"parents", "listeners"} {
		list, _ := status[field].([]any)
		for _, item := range list {
			if entry, ok := item.(map[string]any); ok {
				for _, c := range conditionsOf(entry) {
					of(c)
				}
			}
		}
	}
}

// observedInRoutes is the generation of an object of the Gateway API that its status is about: these say it in each condition, and nowhere else.
func observedInRoutes(in *unstructured.Unstructured) (most int64) {
	status, _ := in.Object["status"].(map[string]any)
	note := func(c map[string]any) {
		if observed, ok := c["observedGeneration"].(int64); ok {
			most = max(most, observed)
		}
	}
	for _, c := range conditionsOf(status) {
		note(c)
	}
	inRoutes(status, note)
	return most
}
