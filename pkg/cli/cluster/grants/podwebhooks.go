package grants

import (
	"net"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// PodWebhooksName names the webhook by which a cluster asks the logical cluster about pods. It is apart from what joining applies whole, so that it can
// be taken back.
func PodWebhooksName(logical types.UID) string { return Name(logical) + "-pods" }

// TokenToCome stands where the token will be.
const TokenToCome = "TOKEN-MADE-BY-JOINING" //nolint:gosec // it is none

// PodWebhook is how a cluster asks the logical cluster about pods.
type PodWebhook struct {
	// BaseURL is where the logical cluster is, CABundle its certificate authority in PEM, and Cluster what it calls the cluster.
	BaseURL, CABundle, Cluster string
	// Token is what the cluster asks with.
	Token string
}

// Loopback reports whether no other machine than that of the logical cluster reaches what its clusters are told.
func (w PodWebhook) Loopback() bool {
	at, err := url.Parse(w.BaseURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(at.Hostname())
	return at.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// With returns the same with the token of a webhook that is there, which nobody else knows.
func (w PodWebhook) With(found *admissionregistrationv1.MutatingWebhookConfiguration) PodWebhook {
	if found != nil && len(found.Webhooks) > 0 && found.Webhooks[0].ClientConfig.URL != nil {
		_, w.Token = podhooks.CutURL(*found.Webhooks[0].ClientConfig.URL)
	}
	return w
}

// podHooks is the webhook by which a cluster asks about pods: in namespaces of the logical cluster that its syncer labels, and about what controllers
// of the cluster make there. Pods that carry the mark are admitted already.
func podHooks(logical types.UID, how PodWebhook) *admissionregistrationv1.MutatingWebhookConfiguration {
	webhook := func(name, label string, failures admissionregistrationv1.FailurePolicyType) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name: name + ".pods.manifold.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To(podhooks.URL(how.BaseURL, how.Cluster, how.Token)), CABundle: []byte(how.CABundle),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
				},
			}},
			FailurePolicy: &failures, MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				manifoldv1alpha1.LabelLogicalCluster: string(logical), manifoldv1alpha1.LabelPodWebhooks: label,
			}},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: manifoldv1alpha1.LabelLogicalCluster, Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
			SideEffects:    ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds: ptr.To(int32(podhooks.Timeout / time.Second)), AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: PodWebhooksName(logical), Labels: Labels()},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			webhook("fail", manifoldv1alpha1.PodWebhooksFail, admissionregistrationv1.Fail),
			webhook("ignore", manifoldv1alpha1.PodWebhooksIgnore, admissionregistrationv1.Ignore),
		},
	}
}

// ForPodWebhooks returns the webhook by which a cluster asks about pods.
func ForPodWebhooks(logical types.UID, how PodWebhook) ([]Piece, error) {
	return assemble(podWebhook(logical, how))
}

func podWebhook(logical types.UID, how PodWebhook) row {
	return row{
		version: admissionregistrationv1.SchemeGroupVersion, kind: "MutatingWebhookConfiguration", resource: "mutatingwebhookconfigurations",
		object: podHooks(logical, how),
		why: "Asks the logical cluster about pods that controllers make, in its namespaces for whose pods it has webhooks, by --pod-webhooks. " +
			"The token in the URL is for that alone.",
	}
}
