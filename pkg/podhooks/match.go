package podhooks

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Webhook is what of a webhook says whether it is called for a pod.
type Webhook struct {
	Name     string
	Rules    []admissionregistrationv1.RuleWithOperations
	Within   *metav1.LabelSelector
	Failures *admissionregistrationv1.FailurePolicyType
}

// WebhooksOf returns the webhooks of a configuration of either kind; none of anything else.
func WebhooksOf(configuration any) []Webhook {
	var out []Webhook
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			out = append(out, Webhook{w.Name, w.Rules, w.NamespaceSelector, w.FailurePolicy})
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			out = append(out, Webhook{w.Name, w.Rules, w.NamespaceSelector, w.FailurePolicy})
		}
	}
	return out
}

// SeesNewPods reports whether it is called for new pods of some namespace.
func (w Webhook) SeesNewPods() bool { return slices.ContainsFunc(w.Rules, matchesNewPods) }

// within reports whether it is called for what is in a namespace with these labels.
func (w Webhook) within(namespace map[string]string) bool {
	if w.Within == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Within)
	return err == nil && selector.Matches(labels.Set(namespace))
}

// newPod is the creation of a pod in some namespace.
var newPod = admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), metav1.NamespaceDefault, "",
	corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)

func matchesNewPods(rule admissionregistrationv1.RuleWithOperations) bool {
	matcher := rules.Matcher{Rule: rule, Attr: newPod}
	return matcher.Matches()
}

// LabelFor returns the value of LabelPodWebhooks for a namespace that has these labels above, "" for none: whether any of the webhooks is called
// for pods there, and whether one of those must be.
func LabelFor(namespace map[string]string, webhooks []Webhook) string {
	value := ""
	for _, w := range webhooks {
		if !w.SeesNewPods() || !w.within(namespace) {
			continue
		}
		if ptr.Deref(w.Failures, admissionregistrationv1.Fail) == admissionregistrationv1.Fail {
			return v1alpha1.PodWebhooksFail
		}
		value = v1alpha1.PodWebhooksIgnore
	}
	return value
}
