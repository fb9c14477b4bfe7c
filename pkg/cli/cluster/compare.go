package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// finding is what came of comparing one object in a cluster with what joining makes.
type finding struct {
	// what names the object.
	what string
	// unread says why it was not compared, "" if it was.
	unread string
	// differs are the differences, a line for each; none if there is none.
	differs []string
}

// compare looks at everything that joining makes in p for a logical cluster, and at what else its ServiceAccount is given there.
func (p *physical) compare(ctx context.Context, logical types.UID) ([]finding, error) {
	kinds, err := p.allowed(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", kindsName(logical), err)
	}
	priorities, err := p.allowedPriorities(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", prioritiesName(logical), err)
	}
	volumes, err := p.allowsVolumes(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read ClusterRole %s: %w", volumesName(logical), err)
	}
	custom := allowances{priorities: priorities, volumes: volumes || p.volumes}
	if custom.asks, err = p.askingAsIs(ctx, logical); err != nil {
		return nil, err
	}
	if len(kinds) > 0 {
		custom.kinds = customOnly(kinds)
	}
	all, err := everything(logical, custom)
	if err != nil {
		return nil, err
	}
	if len(kinds) > 0 && len(custom.kinds) == 0 { // the role is there, and grants what no flag would have added
		none, err := kindPieces(logical, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, none...)
	}
	var out []finding
	for _, piece := range all {
		found, err := p.look(ctx, piece)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", piece, err)
		}
		out = append(out, found)
	}
	further, err := p.furtherBindings(ctx, logical, all)
	if err != nil {
		return nil, err
	}
	return append(out, further), nil
}

// look compares one piece with what the cluster has.
func (p *physical) look(ctx context.Context, piece piece) (finding, error) {
	live, err := p.dynamic.Resource(piece.resource).Namespace(piece.object.GetNamespace()).Get(ctx, piece.object.GetName(), metav1.GetOptions{})
	out := finding{what: piece.String()}
	switch {
	case apierrors.IsNotFound(err):
		out.differs = []string{"missing"}
		return out, nil
	case apierrors.IsForbidden(err):
		out.unread = "the credential may not read it"
		return out, nil
	case err != nil:
		return out, err
	}
	out.differs, err = piece.differences(live)
	return out, err
}

// differences returns in what an object of the cluster is not the piece: one line for each rule, subject or field.
func (p piece) differences(live *unstructured.Unstructured) ([]string, error) {
	switch p.object.GetKind() {
	case "ClusterRole", "Role":
		return ruleDifferences(p.object, live)
	case "ClusterRoleBinding", "RoleBinding":
		return bindingDifferences(p.object, live)
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return fieldDifferences("spec", p.object.Object["spec"], live.Object["spec"]), nil
	case "MutatingWebhookConfiguration":
		return fieldDifferences("webhooks", p.object.Object["webhooks"], live.Object["webhooks"]), nil
	case "ServiceAccount":
		const field = "automountServiceAccountToken"
		return fieldDifferences(field, p.object.Object[field], live.Object[field]), nil
	}
	return nil, nil
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
	for _, line := range summarise(beyond(wanted.Rules, has.Rules)) {
		out = append(out, "missing: "+line)
	}
	for _, line := range summarise(beyond(has.Rules, wanted.Rules)) {
		out = append(out, "more than needed: "+line)
	}
	if has.AggregationRule != nil {
		out = append(out, "more than needed: it takes in other roles by an aggregation rule")
	}
	return out, nil
}

// beyond returns what some rules grant and others do not.
func beyond(rules, others []rbacv1.PolicyRule) []question {
	return slices.DeleteFunc(questionsOf(rules), func(q question) bool {
		return slices.ContainsFunc(others, func(rule rbacv1.PolicyRule) bool { return grants(rule, q) })
	})
}

// questionsOf splits rules into the single rights that they consist of.
func questionsOf(rules []rbacv1.PolicyRule) []question {
	var rows []Right
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			rows = append(rows, Right{Paths: rule.NonResourceURLs, Verbs: rule.Verbs})
		}
		for _, group := range rule.APIGroups {
			rows = append(rows, Right{Group: group, Resources: rule.Resources, Names: rule.ResourceNames, Verbs: rule.Verbs})
		}
	}
	return questions(rows...)
}

// grants reports whether a rule grants a single right, which may be one to everything.
func grants(rule rbacv1.PolicyRule, q question) bool {
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

// homes notes the namespaces of a logical cluster, where its syncer takes the right to read Secrets.
func (p *physical) homes(ctx context.Context, logical types.UID, into map[string]bool) error {
	list, err := p.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: manifoldv1alpha1.LabelLogicalCluster + "=" + string(logical)})
	if err != nil {
		return err
	}
	for _, namespace := range list.Items {
		into[namespace.Name] = true
	}
	return nil
}

// furtherBindings looks for bindings that are not of joining's making and give the syncer's ServiceAccount more.
func (p *physical) furtherBindings(ctx context.Context, logical types.UID, all []piece) (finding, error) {
	out := finding{what: "Other bindings of ServiceAccount " + manifoldv1alpha1.SystemNamespace + "/" + syncerName(logical)}
	known := map[string]bool{}
	for _, piece := range all {
		known[piece.String()] = true
	}
	self, homes := syncerAlone(logical)[0], map[string]bool{}
	look := func(kind, namespace, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		what := kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
		taken := namespace != "" && role.Kind == "ClusterRole" && role.Name == rights.SecretsRole(string(logical)) && homes[namespace]
		if !known[what] && !taken && slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return sameSubject(s, self) }) {
			out.differs = append(out.differs, fmt.Sprintf("more than needed: %s gives it %s %s", what, role.Kind, role.Name))
		}
	}
	bindings, err := p.client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err == nil {
		err = p.homes(ctx, logical, homes)
	}
	if err == nil {
		for _, b := range bindings.Items {
			look("ClusterRoleBinding", "", b.Name, b.RoleRef, b.Subjects)
		}
		var within *rbacv1.RoleBindingList
		if within, err = p.client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
			for _, b := range within.Items {
				look("RoleBinding", b.Namespace, b.Name, b.RoleRef, b.Subjects)
			}
		}
	}
	if apierrors.IsForbidden(err) {
		out.unread, err = "the credential may not list them", nil
	}
	return out, err
}
