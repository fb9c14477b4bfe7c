package summary

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json" // it keeps whole numbers whole

	"github.com/manifold-dev/manifold/internal/text"
)

// CustomReport is what is known of one cluster's copy of an object of a custom kind.
type CustomReport struct {
	// Generation is the generation of the object above that the copy carries out, 0 if none. Its status may lag behind it.
	Generation int64
	// Routes is the mark of what the copy has otherwise than the object above says, "" for nothing.
	Routes string
	// Content names the manifest that the copy is made of, see identity.Revision; "" for one of no application.
	Content string
	// Live is the copy, nil if there is none or nothing is known of it.
	Live *unstructured.Unstructured
	// Stale tells that the cluster is silent, so that everything else is the last that was heard of it.
	Stale bool
	// Problem says why the cluster does not have the copy, or not as it should be, in words for the user.
	Problem string
}

// said is a copy of what the copy says of itself, as it may be shown, nil if nothing. It is not whole if that is too large.
func (r CustomReport) said() (status map[string]any, whole bool) {
	if r.Live == nil {
		return nil, true
	}
	status, _ = r.Live.Object["status"].(map[string]any)
	return saneCustom(status)
}

// CustomInput is what the status of an object of a custom kind is made from, beside the object itself.
type CustomInput struct {
	// Clusters are those that are to have a copy.
	Clusters []string
	// Reports are those of the clusters that have a copy or are to have one.
	Reports map[string]CustomReport
	// CountsStatus tells that the generation of objects of the kind counts changes of the status too, because they have no status
	// subresource. Then an observed generation means nothing, and stays as it is.
	CountsStatus bool
	// Withdrawals are those of the addresses of a Gateway, by cluster.
	Withdrawals map[string]Withdrawal
	// Early are the clusters whose addresses of a Gateway are not shown yet, see Early.
	Early map[string]bool
	// Now is the time of conditions that change.
	Now metav1.Time
}

// CustomStatus returns the status of an object of a custom kind. That of a single cluster is the object's, within bounds. Of several it is what
// all of them say: fields that are equal everywhere, the conditions that all agree on, and as Unknown those that they do not. What leads users
// there from outside, as the addresses of a Gateway, is that of all of them. An observed generation is translated to what it means above. Nil stands
// for no status.
func CustomStatus(in *unstructured.Unstructured, from CustomInput) map[string]any {
	var all []said
	for _, cluster := range from.Clusters {
		report := from.Reports[cluster]
		status, _ := report.said()
		if !from.CountsStatus {
			translate(status, in, report)
		}
		all = append(all, said{cluster, status})
	}
	var out map[string]any
	switch len(all) {
	case 0:
		return nil
	case 1:
		out = all[0].status
	default:
		out = commonStatus(in, all, from.Now)
	}
	return join(out, in, all, from)
}

// commonStatus is what all clusters say, nil for nothing.
func commonStatus(in *unstructured.Unstructured, all []said, now metav1.Time) map[string]any {
	out := common(all)
	if observed, told := lowest(all); told {
		out["observedGeneration"] = observed
	}
	if conditions := commonConditions(in, all, now); len(conditions) > 0 {
		out["conditions"] = conditions
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// said is what one cluster says in its status.
type said struct {
	cluster string
	status  map[string]any
}

// translate turns the generations that a cluster counts into those above. What was observed of another projection than that of the
// object's generation says nothing of it, so it stays below it, and never goes beyond what the object tells already.
func translate(status map[string]any, in *unstructured.Unstructured, report CustomReport) {
	if status == nil {
		return
	}
	above := in.GetGeneration()
	before, _, _ := unstructured.NestedInt64(in.Object, "status", "observedGeneration")
	ofGateways := in.GroupVersionKind().Group == gatewayGroup
	if ofGateways {
		before = observedInRoutes(in)
	}
	of := func(holder map[string]any) {
		observed, ok := holder["observedGeneration"].(int64)
		switch {
		case !ok:
		case report.Stale:
			holder["observedGeneration"] = min(before, above) // it confirms nothing anew
		case report.Generation >= above && observed >= report.Live.GetGeneration():
			holder["observedGeneration"] = above
		default:
			holder["observedGeneration"] = max(0, min(before, above-1))
		}
	}
	of(status)
	for _, c := range conditionsOf(status) {
		of(c)
	}
	if ofGateways {
		inRoutes(status, of)
	}
}

// common is what all statuses have, conditions and the observed generation aside.
func common(all []said) map[string]any {
	out := runtime.DeepCopyJSON(all[0].status)
	if out == nil {
		out = map[string]any{}
	}
	for _, s := range all[1:] {
		out = intersect(out, s.status)
	}
	delete(out, "observedGeneration")
	if isConditions(all[0].status["conditions"]) {
		delete(out, "conditions")
	}
	return out
}

// intersect keeps of one what is the same in other. A list is one value.
func intersect(one, other map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range one {
		there, ok := other[key]
		if !ok {
			continue
		}
		a, isMap := value.(map[string]any)
		b, isToo := there.(map[string]any)
		switch {
		case reflect.DeepEqual(value, there):
			out[key] = value
		case isMap && isToo:
			if both := intersect(a, b); len(both) > 0 {
				out[key] = both
			}
		}
	}
	return out
}

// lowest is the generation that all have observed; false if any does not tell.
func lowest(all []said) (observed int64, told bool) {
	for i, s := range all {
		value, ok := s.status["observedGeneration"].(int64)
		if !ok {
			return 0, false
		}
		if i == 0 || value < observed {
			observed = value
		}
	}
	return observed, true
}

// conditionsOf returns the conditions of a status, none if it has no such list.
func conditionsOf(status map[string]any) []map[string]any {
	if !isConditions(status["conditions"]) {
		return nil
	}
	var out []map[string]any
	for _, c := range status["conditions"].([]any) {
		out = append(out, c.(map[string]any))
	}
	return out
}

// isConditions reports whether a value is a list of what has a type and a status.
func isConditions(value any) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool {
		c, isMap := item.(map[string]any)
		if !isMap {
			return true
		}
		_, hasType := c["type"].(string)
		_, hasStatus := c["status"].(string)
		return !hasType || !hasStatus
	})
}

// commonConditions makes one condition of each type that any cluster tells. One that not all tell alike is Unknown, since not every type
// of it means well by True, and its message tells what each says.
func commonConditions(in *unstructured.Unstructured, all []said, now metav1.Time) []any {
	var types []string
	byType := map[string]map[string]map[string]any{}
	for _, s := range all {
		for _, c := range conditionsOf(s.status) {
			of := c["type"].(string)
			if byType[of] == nil {
				types = append(types, of)
				byType[of] = map[string]map[string]any{}
			}
			byType[of][s.cluster] = c
		}
	}
	before, _ := in.Object["status"].(map[string]any)
	var out []any
	for _, of := range fewTypes(types, byType) {
		out = append(out, oneCondition(of, byType[of], all, conditionsOf(before), now))
	}
	return out
}

func oneCondition(of string, told map[string]map[string]any, all []said, before []map[string]any, now metav1.Time) map[string]any {
	var words blame
	first, agreed := told[all[0].cluster], true
	for _, s := range all {
		c := told[s.cluster]
		agreed = agreed && c != nil && first != nil && c["status"] == first["status"]
		words.add(s.cluster, conditionInWords(c))
	}
	var out map[string]any
	if agreed {
		out = runtime.DeepCopyJSON(first)
		for _, s := range all[1:] {
			out = intersect(out, told[s.cluster])
		}
		for _, key := range []string{"reason", "lastTransitionTime", "lastUpdateTime"} {
			if value, ok := first[key]; ok {
				out[key] = value
			}
		}
		if observed, isTold := lowest(alike(told, all)); isTold {
			out["observedGeneration"] = observed
		}
		if first["message"] != nil && out["message"] == nil {
			out["message"] = text.Line(words.String(), mostJoined)
		}
	} else {
		out = map[string]any{
			"type": of, "status": string(metav1.ConditionUnknown), "reason": reasonDiffer, "message": text.Line(words.String(), mostJoined),
			"lastTransitionTime": now.UTC().Format("2006-01-02T15:04:05Z"),
		}
	}
	for _, old := range before {
		if old["type"] == of && old["status"] == out["status"] && old["lastTransitionTime"] != nil {
			out["lastTransitionTime"] = old["lastTransitionTime"]
		}
	}
	return out
}

// alike returns what the clusters tell in their conditions of one type, as if it were their statuses.
func alike(told map[string]map[string]any, all []said) []said {
	out := make([]said, len(all))
	for i, s := range all {
		out[i] = said{s.cluster, told[s.cluster]}
	}
	return out
}

func conditionInWords(c map[string]any) string {
	if c == nil {
		return "does not say"
	}
	words := fmt.Sprint(c["status"])
	if reason, _ := c["reason"].(string); reason != "" {
		words += " (" + reason + ")"
	}
	if message, _ := c["message"].(string); message != "" {
		words += ": " + message
	}
	return words
}

// CustomBreakdown is the status by cluster of an object of a custom kind, as the annotation manifold.dev/status holds it.
type CustomBreakdown map[string]CustomCluster

// CustomCluster is what the breakdown tells of one cluster. The fields that it shares with ClusterStatus have the same names.
type CustomCluster struct {
	// Generation is the generation above that the cluster carries out; 0 if it has never had a copy as far as is known.
	Generation int64 `json:"generation,omitempty"`
	// Routes is the mark of what the cluster holds otherwise than the object says, see projection.Routes; "" for nothing.
	Routes string `json:"routes,omitempty"`
	// Content names the manifest of an application that the cluster's copy is made of.
	Content string `json:"content,omitempty"`
	// Stale tells that the cluster is silent and this is the last that was heard of it.
	Stale bool `json:"stale,omitempty"`
	// Problem says why the cluster cannot hold the object.
	Problem string `json:"problem,omitempty"`
	// State is how the copy fares, in a few words: "Ready", "Ready=False (NoDisk)", "Running".
	State string `json:"state,omitempty"`
	// Unready tells that the copy says that it is not ready, or says nothing yet of what it is now.
	Unready bool `json:"unready,omitempty"`
	// Withdrawal is how far the addresses of a Gateway are on their way out of the status.
	Withdrawal
	// Status is what the copy says of itself, where there are several. Omitted tells that it is too large to be shown, or all of them together are.
	Status  map[string]any `json:"status,omitempty"`
	Omitted bool           `json:"omitted,omitempty"`
}

// maxStatuses is how large all statuses of a breakdown together may be. All annotations of an object may have 256 KiB.
const maxStatuses = 64 << 10

// CustomBreakdownOf gives the breakdown of what the clusters report. A stale cluster of which nothing else is known keeps what last says.
func CustomBreakdownOf(from CustomInput, last CustomBreakdown) CustomBreakdown {
	out := CustomBreakdown{}
	for cluster, report := range from.Reports {
		status, whole := report.said()
		entry := CustomCluster{
			Generation: report.Generation, Routes: report.Routes, Content: report.Content, Problem: Text(report.Problem),
			State: Text(stateOf(status)), Unready: report.unready(status, from.CountsStatus), Omitted: !whole,
		}
		if len(from.Reports) > 1 && whole {
			entry.Status = status
		}
		if report.Stale && report.Live == nil {
			entry = last[cluster]
		}
		entry.Stale, entry.Withdrawal = report.Stale, from.Withdrawals[cluster]
		out[cluster] = entry
	}
	if len(out.String()) > maxStatuses {
		for cluster, entry := range out {
			entry.Omitted = entry.Omitted || entry.Status != nil
			entry.Status = nil
			out[cluster] = entry
		}
	}
	return out
}

// unready reports whether a copy says that it is not ready, in one of the usual ways, or says nothing yet of its generation. Where that counts
// changes of the status too, the generation that a status observes is always behind, and tells nothing.
func (r CustomReport) unready(status map[string]any, countsStatus bool) bool {
	if observed, tells := status["observedGeneration"].(int64); tells && !countsStatus && observed < r.Live.GetGeneration() {
		return true
	}
	c := telling(status)
	return c != nil && c["status"] != string(metav1.ConditionTrue)
}

// telling is the condition that tells how an object fares, nil if none of the usual ones is there.
func telling(status map[string]any) map[string]any {
	conditions := conditionsOf(status)
	for _, of := range []string{"Ready", "Available", "Succeeded", "Complete", "Healthy", "Established"} {
		for _, c := range conditions {
			if c["type"] == of {
				return c
			}
		}
	}
	return nil
}

// stateOf says in a few words how an object fares that says so in one of the usual ways, "" otherwise.
func stateOf(status map[string]any) string {
	if c := telling(status); c != nil {
		if c["status"] == string(metav1.ConditionTrue) {
			return fmt.Sprint(c["type"])
		}
		text := fmt.Sprintf("%s=%s", c["type"], c["status"])
		if reason, _ := c["reason"].(string); reason != "" {
			text += " (" + reason + ")"
		}
		return text
	}
	for _, key := range []string{"phase", "state"} {
		if text, ok := status[key].(string); ok {
			return text
		}
	}
	return ""
}

// String returns the breakdown as compact JSON, the same for equal breakdowns, and "" for an empty one: no annotation then.
func (b CustomBreakdown) String() string {
	if len(b) == 0 {
		return ""
	}
	data, err := json.Marshal(map[string]CustomCluster(b))
	if err != nil {
		return "" // What came from JSON always encodes.
	}
	return string(data)
}

// ParseCustomBreakdown reads what String wrote. An empty string is an empty breakdown; fields of later versions are ignored.
func ParseCustomBreakdown(annotation string) (CustomBreakdown, error) {
	if annotation == "" {
		return CustomBreakdown{}, nil
	}
	var out CustomBreakdown
	if err := utiljson.Unmarshal([]byte(annotation), &out); err != nil {
		return nil, fmt.Errorf("parse the status by cluster %.100q: %w", annotation, err)
	}
	return out, nil
}

// Clusters are the names of the clusters, sorted.
func (b CustomBreakdown) Clusters() []string { return slices.Sorted(maps.Keys(b)) }
