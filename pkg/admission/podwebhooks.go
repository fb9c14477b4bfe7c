package admission

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/warning"
)

// podWebhooks warns of webhooks that are registered for new pods. The pods of workloads are made in the clusters, and a mirror is not what runs,
// so such a webhook would be waited for in vain.
type podWebhooks struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &podWebhooks{}

// Validate warns of each webhook that the object before did not have registered so, and refuses nothing.
func (*podWebhooks) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().Group != admissionregistrationv1.GroupName || a.GetSubresource() != "" {
		return nil
	}
	before, err := seesPods(a.GetKind().Kind, a.GetOldObject(), o)
	if err != nil {
		return err
	}
	now, err := seesPods(a.GetKind().Kind, a.GetObject(), o)
	if err != nil {
		return err
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			warning.AddWarning(ctx, "", fmt.Sprintf("webhook %q is called for pods that users create themselves. Pods of Deployments and other workloads "+
				"are made in the clusters, where it is not called: register it there as well", name))
		}
	}
	return nil
}

// seesPods returns the names of the webhooks of a configuration of whose rules one matches new pods.
func seesPods(kind string, configuration runtime.Object, o admission.ObjectInterfaces) ([]string, error) {
	if configuration == nil || kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil, nil
	}
	versioned, err := admission.ConvertToGVK(configuration, admissionregistrationv1.SchemeGroupVersion.WithKind(kind), o)
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(name string, rules []admissionregistrationv1.RuleWithOperations) {
		if slices.ContainsFunc(rules, matchesNewPods) {
			names = append(names, name)
		}
	}
	switch c := versioned.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			add(w.Name, w.Rules)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			add(w.Name, w.Rules)
		}
	}
	return names, nil
}

// newPod is the creation of a pod, of whatever name and namespace.
var newPod = admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), metav1.NamespaceDefault, "",
	corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)

func matchesNewPods(rule admissionregistrationv1.RuleWithOperations) bool {
	matcher := rules.Matcher{Rule: rule, Attr: newPod}
	return matcher.Matches()
}
