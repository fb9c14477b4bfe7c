package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// podHooksName names the webhook by which a cluster asks the logical cluster about pods. It is apart from what joining applies whole, so that it can
// be taken back.
func podHooksName(logical types.UID) string { return syncerName(logical) + "-pods" }

const (
	// rootCAName is the ConfigMap with the authority of an API server, which it has in each namespace, and rootCAKey its key there.
	rootCAName, rootCAKey = "kube-root-ca.crt", "ca.crt"
	// tokenToCome stands where the token will be.
	tokenToCome = "TOKEN-MADE-BY-JOINING" //nolint:gosec // it is none
)

// asking is how a cluster asks the logical cluster about pods.
type asking struct {
	// base is where the logical cluster is, authority its certificate authority in PEM, and cluster what it calls the cluster.
	base, authority, cluster string
	// token is what the cluster asks with.
	token string
}

// askingOf reads where clusters find the logical cluster. The token is still to come.
func (l *logical) askingOf(ctx context.Context, cluster string) (*asking, error) {
	public := l.client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	settings, err := public.Get(ctx, manifoldv1alpha1.SettingsName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read where clusters find the logical cluster: %w", err)
	}
	var root *corev1.ConfigMap
	// A logical cluster that has just been made for the first time publishes it in a moment.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		root, err = public.Get(ctx, rootCAName, metav1.GetOptions{})
		return !apierrors.IsNotFound(err), ignoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of the logical cluster, ConfigMap %s/%s: %w", metav1.NamespacePublic, rootCAName, err)
	}
	out := &asking{
		base: settings.Data[manifoldv1alpha1.SettingAdvertiseURL], authority: root.Data[rootCAKey], cluster: cluster, token: tokenToCome,
	}
	if out.base == "" || out.authority == "" {
		return nil, fmt.Errorf("ConfigMaps %s and %s in namespace %s do not say where clusters find the logical cluster",
			manifoldv1alpha1.SettingsName, rootCAName, metav1.NamespacePublic)
	}
	return out, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// loopback reports whether no other machine than that of the logical cluster reaches what its clusters are told.
func (a *asking) loopback() bool {
	at, err := url.Parse(a.base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(at.Hostname())
	return at.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// podHooks is the webhook by which a cluster asks about pods: in namespaces of the logical cluster that its syncer labels, and about what controllers
// of the cluster make there. Pods that carry the mark are admitted already.
func podHooks(logical types.UID, how asking) *admissionregistrationv1.MutatingWebhookConfiguration {
	webhook := func(name, label string, failures admissionregistrationv1.FailurePolicyType) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name: name + ".pods.manifold.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To(podhooks.URL(how.base, how.cluster, how.token)), CABundle: []byte(how.authority),
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
		ObjectMeta: metav1.ObjectMeta{Name: podHooksName(logical), Labels: madeByManifold()},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			webhook("fail", manifoldv1alpha1.PodWebhooksFail, admissionregistrationv1.Fail),
			webhook("ignore", manifoldv1alpha1.PodWebhooksIgnore, admissionregistrationv1.Ignore),
		},
	}
}

func podHookPieces(logical types.UID, how asking) ([]piece, error) {
	return assemble(podHooksName(logical), []row{{
		version: admissionregistrationv1.SchemeGroupVersion, kind: "MutatingWebhookConfiguration", resource: "mutatingwebhookconfigurations",
		object: podHooks(logical, how),
		why: "Asks the logical cluster about pods that controllers make, in its namespaces for whose pods it has webhooks, by --pod-webhooks.\n" +
			"# The token in the URL is for that alone.",
	}})
}

// askPods has the cluster ask about pods.
func (p *physical) askPods(ctx context.Context, logical types.UID, undo *undoStack) error {
	all, err := podHookPieces(logical, *p.asks)
	if err != nil {
		return err
	}
	for _, piece := range all {
		if err := p.apply(ctx, piece, undo); err != nil {
			return fmt.Errorf("apply %s in the cluster: %w", piece, err)
		}
	}
	return nil
}

// asksPods returns the webhook by which the cluster asks about pods, nil if it does not.
func (p *physical) asksPods(ctx context.Context, logical types.UID) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	found, err := p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, podHooksName(logical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !labels.SelectorFromSet(madeByManifold()).Matches(labels.Set(found.Labels)) {
		return nil, nil
	}
	return found, nil
}

// unaskPods has the cluster ask about pods no more, and reports whether it did.
func (p *physical) unaskPods(ctx context.Context, logical types.UID) (taken bool, err error) {
	found, err := p.asksPods(ctx, logical)
	if err != nil || found == nil {
		return false, err
	}
	all, err := podHookPieces(logical, asking{})
	if err != nil {
		return false, err
	}
	return true, p.removeAll(ctx, all, logical)
}

// askingToken makes a token for the cluster to ask with, and returns what is to be stored of it beside what is stored.
func (l *logical) askingToken(ctx context.Context, cluster string) (token string, stored []byte, err error) {
	if token, err = podhooks.NewToken(); err != nil {
		return "", nil, err
	}
	name := credentialName(cluster)
	before, err := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		before, err = &corev1.Secret{}, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("read Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	stored, err = podhooks.Renewed(before.Data[podhooks.TokensKey], token, time.Now())
	return token, stored, err
}

// renewAsking gives a cluster that asks about pods another token to ask with, and reports whether it asks.
func (l *logical) renewAsking(ctx context.Context, physical *physical, cluster *manifoldv1alpha1.Cluster) (bool, error) {
	if !cluster.Spec.Allows.PodWebhooks {
		return false, nil
	}
	found, err := physical.asksPods(ctx, l.uid)
	if err != nil {
		return false, fmt.Errorf("read MutatingWebhookConfiguration %s in the cluster: %w", podHooksName(l.uid), err)
	}
	if found == nil {
		return false, errors.New("the cluster does not ask about pods, though it was let: run \"manifold cluster join " + cluster.Name +
			" --cluster-kubeconfig FILE --pod-webhooks\"")
	}
	if physical.asks, err = l.askingOf(ctx, cluster.Name); err != nil {
		return false, err
	}
	var stored []byte
	if physical.asks.token, stored, err = l.askingToken(ctx, cluster.Name); err != nil {
		return false, err
	}
	if err := l.storeAsking(ctx, cluster.Name, stored); err != nil {
		return false, err
	}
	return true, physical.askPods(ctx, l.uid, &undoStack{})
}

// askingAsIs is how the cluster is to ask about pods, with the token that it asks with, which nobody else knows; nil if it is not to ask, and does
// not.
func (p *physical) askingAsIs(ctx context.Context, logical types.UID) (*asking, error) {
	found, err := p.asksPods(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", podHooksName(logical), err)
	}
	if p.asks == nil || found == nil && !p.asksSaid {
		return nil, nil
	}
	how := *p.asks
	if found != nil && len(found.Webhooks) > 0 && found.Webhooks[0].ClientConfig.URL != nil {
		_, how.token = podhooks.CutURL(*found.Webhooks[0].ClientConfig.URL)
	}
	return &how, nil
}
