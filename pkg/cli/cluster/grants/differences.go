package grants

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// Differences returns in what an object of the cluster is not the piece: one line for each rule, subject or field.
func (p Piece) Differences(live *unstructured.Unstructured) ([]string, error) {
	switch p.Object.GetKind() {
	case "ClusterRole", "Role":
		return ruleDifferences(p.Object, live)
	case "ClusterRoleBinding", "RoleBinding":
		return bindingDifferences(p.Object, live)
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return fieldDifferences("spec", untold(p.Object.Object["spec"]), untold(live.Object["spec"])), nil
	case "MutatingWebhookConfiguration":
		return fieldDifferences("webhooks", p.Object.Object["webhooks"], live.Object["webhooks"]), nil
	case "ServiceAccount":
		const field = "automountServiceAccountToken"
		return fieldDifferences(field, p.Object.Object[field], live.Object[field]), nil
	}
	return nil, nil
}

// untold is the spec of a policy without what those are told whom it refuses: that a newer version has other words for it changes nothing of what it refuses.
func untold(spec any) any {
	of, is := plain(spec).(map[string]any) // a copy
	if !is {
		return spec
	}
	validations, _ := of["validations"].([]any)
	for _, validation := range validations {
		if v, is := validation.(map[string]any); is {
			delete(v, "message")
			delete(v, "messageExpression")
		}
	}
	return of
}

// Patch returns a JSON patch that brings what somebody else has changed of a piece back to what it should be, nil if there is nothing to bring
// back: an apply leaves what others have added to a list, be it a condition under which a policy counts, and only puts back what was taken away.
func (p Piece) Patch(live *unstructured.Unstructured) ([]byte, error) {
	differs, err := p.Differences(live)
	if err != nil || len(differs) == 0 {
		return nil, err
	}
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": live.GetUID()}}
	for _, field := range []string{"spec", "rules", "subjects", "webhooks"} {
		if want, has := p.Object.Object[field]; has {
			patch = append(patch, map[string]any{"op": "add", "path": "/" + field, "value": want})
		}
	}
	if _, has := live.Object["aggregationRule"]; has {
		patch = append(patch, map[string]any{"op": "remove", "path": "/aggregationRule"})
	}
	if len(patch) == 1 {
		return nil, nil
	}
	return json.Marshal(patch)
}

// ruleDifferences compares what two roles grant, however their rules put it.
func ruleDifferences(want, live *unstructured.Unstructured) ([]string, error) {
	var wanted, has rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, &wanted); err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &has); err != nil {
		return nil, err
	}
	var out []string
	for _, line := range Summarise(beyond(wanted.Rules, has.Rules)) {
		out = append(out, "missing: "+line)
	}
	for _, line := range Summarise(beyond(has.Rules, wanted.Rules)) {
		out = append(out, "more than needed: "+line)
	}
	if has.AggregationRule != nil {
		out = append(out, "more than needed: it takes in other roles by an aggregation rule")
	}
	return out, nil
}

// beyond returns what some rules grant and others do not.
func beyond(rules, others []rbacv1.PolicyRule) []Question {
	return slices.DeleteFunc(questionsOf(rules), func(q Question) bool {
		return slices.ContainsFunc(others, func(rule rbacv1.PolicyRule) bool { return grants(rule, q) })
	})
}

// questionsOf splits rules into the single rights that they consist of.
func questionsOf(rules []rbacv1.PolicyRule) []Question {
	var rows []rights.Right
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			rows = append(rows, rights.Right{Paths: rule.NonResourceURLs, Verbs: rule.Verbs})
		}
		for _, group := range rule.APIGroups {
			rows = append(rows, rights.Right{Group: group, Resources: rule.Resources, Names: rule.ResourceNames, Verbs: rule.Verbs})
		}
	}
	return Questions(rows...)
}

// grants reports whether a rule grants a single right, which may be one to everything.
func grants(rule rbacv1.PolicyRule, q Question) bool {
	holds := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	if !holds(rule.Verbs, q.verb) {
		return false
	}
	if q.path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return pattern == q.path || open && strings.HasPrefix(q.path, prefix)
		})
	}
	_, sub, nested := strings.Cut(q.resource, "/")
	resource := holds(rule.Resources, q.resource) || nested && slices.Contains(rule.Resources, "*/"+sub)
	return resource && holds(rule.APIGroups, q.group) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.name))
}

func bindingDifferences(want, live *unstructured.Unstructured) ([]string, error) {
	out := fieldDifferences("roleRef", want.Object["roleRef"], live.Object["roleRef"])
	wanted, err := subjectsOf(want)
	if err != nil {
		return nil, err
	}
	has, err := subjectsOf(live)
	if err != nil {
		return nil, err
	}
	for _, s := range wanted {
		if !slices.ContainsFunc(has, func(h rbacv1.Subject) bool { return sameSubject(h, s) }) {
			out = append(out, "missing: "+describeSubject(s))
		}
	}
	for _, h := range has {
		if !slices.ContainsFunc(wanted, func(s rbacv1.Subject) bool { return sameSubject(h, s) }) {
			out = append(out, "more than needed: it gives the role to "+describeSubject(h))
		}
	}
	return out, nil
}

func subjectsOf(binding *unstructured.Unstructured) ([]rbacv1.Subject, error) {
	var out rbacv1.RoleBinding
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(binding.Object, &out)
	return out.Subjects, err
}

func sameSubject(a, b rbacv1.Subject) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

func describeSubject(s rbacv1.Subject) string {
	return s.Kind + " " + strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
}

// fieldDifferences names the fields in which two values differ, the outermost where one of them has nothing there.
func fieldDifferences(path string, want, live any) []string {
	want, live = plain(want), plain(live)
	if reflect.DeepEqual(want, live) {
		return nil
	}
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			break
		}
		var out []string
		both := maps.Clone(w)
		maps.Copy(both, l)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			out = append(out, fieldDifferences(path+"."+key, w[key], l[key])...)
		}
		return out
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			break
		}
		var out []string
		for i := range w {
			out = append(out, fieldDifferences(fmt.Sprintf("%s[%d]", path, i), w[i], l[i])...)
		}
		return out
	}
	switch {
	case live == nil:
		return []string{"missing: " + path}
	case want == nil:
		return []string{"more than needed: " + path}
	}
	return []string{"differs: " + path}
}

// plain is a value as JSON has it, with nothing for what is empty.
func plain(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		return value
	}
	var out any
	if json.Unmarshal(data, &out) != nil {
		return value
	}
	switch v := out.(type) {
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	}
	return out
}
