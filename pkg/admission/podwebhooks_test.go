package admission

import (
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

func cluster(name string, allows v1alpha1.ClusterAllows) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterSpec{Allows: allows}}
}

func TestWebhooksThatWorkloadsPassByAreWarnedOf(t *testing.T) {
	rule := func(operation admissionregistration.OperationType, group, version, resource string) admissionregistration.RuleWithOperations {
		return admissionregistration.RuleWithOperations{
			Operations: []admissionregistration.OperationType{operation},
			Rule: admissionregistration.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
				Scope: ptr.To(admissionregistration.AllScopes),
			},
		}
	}
	mutating := func(rules ...admissionregistration.RuleWithOperations) runtime.Object {
		return &admissionregistration.MutatingWebhookConfiguration{Webhooks: []admissionregistration.MutatingWebhook{{Name: "inject.example.com", Rules: rules}}}
	}
	validating := func(rules ...admissionregistration.RuleWithOperations) runtime.Object {
		return &admissionregistration.ValidatingWebhookConfiguration{Webhooks: []admissionregistration.ValidatingWebhook{
			{Name: "other.example.com", Rules: []admissionregistration.RuleWithOperations{rule("CREATE", "apps", "v1", "deployments")}},
			{Name: "check.example.com", Rules: rules},
		}}
	}
	clusterScoped := rule("CREATE", "*", "*", "*")
	clusterScoped.Scope = ptr.To(admissionregistration.ClusterScope)
	for name, test := range map[string]struct {
		object, old runtime.Object
		want        []string // the names of webhooks
	}{
		"one that changes pods":             {object: mutating(rule("CREATE", "", "v1", "pods")), want: []string{"inject.example.com"}},
		"one that checks pods":              {object: validating(rule("CREATE", "", "v1", "pods")), want: []string{"check.example.com"}},
		"one for everything":                {object: mutating(rule("*", "*", "*", "*/*")), want: []string{"inject.example.com"}},
		"by one of several rules":           {object: mutating(rule("CREATE", "apps", "v1", "*"), rule("CREATE", "", "*", "pods")), want: []string{"inject.example.com"}},
		"of nothing but what is new":        {object: mutating(rule("*", "", "v1", "pods")), old: mutating(rule("CREATE", "", "v1", "pods"))},
		"once the rule is another":          {object: mutating(rule("*", "", "v1", "pods")), old: mutating(rule("UPDATE", "", "v1", "pods")), want: []string{"inject.example.com"}},
		"not for evictions":                 {object: validating(rule("CREATE", "", "v1", "pods/eviction"))},
		"not for deletions":                 {object: validating(rule("DELETE", "", "v1", "pods"))},
		"not for workloads":                 {object: mutating(rule("CREATE", "apps", "v1", "*"))},
		"not for what is in no namespace":   {object: mutating(clusterScoped)},
		"not without a rule":                {object: mutating()},
		"not for what is no webhook at all": {object: &admissionregistration.ValidatingAdmissionPolicy{}},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			if test.old != nil {
				operation = admission.Update
			}
			kinds, _, err := scheme.Scheme.ObjectKinds(test.object)
			if err != nil {
				t.Fatal(err)
			}
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			attributes := admission.NewAttributesRecord(test.object, test.old, kinds[0], "", "hooks", resource, "", operation, nil, false,
				&user.DefaultInfo{Name: "jane"})
			warnings, interfaces := &recorder{}, admission.NewObjectInterfacesFromScheme(scheme.Scheme)
			silent := cluster("west", v1alpha1.ClusterAllows{Volumes: true})
			plugin := &podWebhooks{joined: func() []*v1alpha1.Cluster {
				return []*v1alpha1.Cluster{cluster("east", v1alpha1.ClusterAllows{PodWebhooks: true}), silent}
			}}
			if err := plugin.Validate(warning.WithWarningRecorder(t.Context(), warnings), attributes, interfaces); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range warnings.texts {
				got = append(got, strings.Split(text, `"`)[1])
				const todo = `in cluster "west". To have it called, run: manifold cluster join west --cluster-kubeconfig FILE --allow-volumes --pod-webhooks.`
				if !strings.Contains(text, todo) {
					t.Errorf("warning %q does not say what to do", text)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("warned of %v, want %v", got, test.want)
			}
		})
	}
}

func TestNobodyIsWarnedWhereAllClustersAsk(t *testing.T) {
	object := &admissionregistration.MutatingWebhookConfiguration{Webhooks: []admissionregistration.MutatingWebhook{{
		Name: "inject.example.com", Rules: []admissionregistration.RuleWithOperations{{
			Operations: []admissionregistration.OperationType{admissionregistration.Create},
			Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}}}
	asks := v1alpha1.ClusterAllows{PodWebhooks: true}
	for name, test := range map[string]struct {
		joined []*v1alpha1.Cluster
		want   string
	}{
		"nowhere to run":  {},
		"all ask":         {joined: []*v1alpha1.Cluster{cluster("east", asks), cluster("west", asks)}},
		"one does not":    {joined: []*v1alpha1.Cluster{cluster("east", asks), cluster("west", v1alpha1.ClusterAllows{})}, want: `in cluster "west". To have it called`},
		"some of many do": {joined: []*v1alpha1.Cluster{cluster("e", v1alpha1.ClusterAllows{}), cluster("d", v1alpha1.ClusterAllows{}), cluster("c", asks), cluster("b", v1alpha1.ClusterAllows{}), cluster("a", v1alpha1.ClusterAllows{})}, want: `in clusters "a", "b", "d", 1 more. To have it called`},
	} {
		t.Run(name, func(t *testing.T) {
			kind := admissionregistration.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			attributes := admission.NewAttributesRecord(object, nil, kind, "", "hooks", resource, "", admission.Create, nil, false, &user.DefaultInfo{Name: "jane"})
			warnings := &recorder{}
			plugin := &podWebhooks{joined: func() []*v1alpha1.Cluster { return test.joined }}
			if err := plugin.Validate(warning.WithWarningRecorder(t.Context(), warnings), attributes, admission.NewObjectInterfacesFromScheme(scheme.Scheme)); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(warnings.texts, "\n"); !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
				t.Errorf("warned with %q, want %q in it", text, test.want)
			}
		})
	}
}

// Controllers may not build on the API server's packages, so what a rule matches is written a second time. Both must say the same.
func TestRulesMatchAsTheAPIServerMatchesThem(t *testing.T) {
	attributes := admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "web",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	for _, operation := range []admissionregistration.OperationType{"*", "CREATE", "UPDATE", "DELETE", "CONNECT"} {
		for _, group := range []string{"*", "", "apps"} {
			for _, version := range []string{"*", "v1", "v2"} {
				for _, resource := range []string{"*", "*/*", "pods", "pods/*", "pods/", "pods/status", "*/status", "deployments", "podsx"} {
					for _, scope := range []*admissionregistration.ScopeType{nil, ptr.To(admissionregistration.AllScopes), ptr.To(admissionregistration.NamespacedScope), ptr.To(admissionregistration.ClusterScope)} {
						rule := admissionregistration.RuleWithOperations{Operations: []admissionregistration.OperationType{operation}, Rule: admissionregistration.Rule{
							APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}, Scope: scope,
						}}
						matcher := rules.Matcher{Rule: rule, Attr: attributes}
						if got, want := (podhooks.Webhook{Rules: []admissionregistration.RuleWithOperations{rule}}).SeesNewPods(), matcher.Matches(); got != want {
							t.Errorf("%+v matches new pods: %t, want %t", rule, got, want)
						}
					}
				}
			}
		}
	}
}
