package admission

import (
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

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
			if err := (&podWebhooks{}).Validate(warning.WithWarningRecorder(t.Context(), warnings), attributes, interfaces); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range warnings.texts {
				got = append(got, strings.Split(text, `"`)[1])
				if !strings.Contains(text, "register it there as well") {
					t.Errorf("warning %q does not say what to do", text)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("warned of %v, want %v", got, test.want)
			}
		})
	}
}
