package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// rootCAName is the ConfigMap with the authority of an API server, which it has in each namespace, and rootCAKey its key there.
const rootCAName, rootCAKey = "kube-root-ca.crt", "ca.crt"

// rootCATimeout bounds the wait for that ConfigMap.
const rootCATimeout = 15 * time.Second

// podWebhook is how a cluster asks about pods, from where clusters find the logical cluster. The token is still to come.
func (l *logical) podWebhook(ctx context.Context, cluster string) (*grants.PodWebhook, error) {
	public := l.client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	settings, err := public.Get(ctx, manifoldv1alpha1.SettingsName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read where clusters find the logical cluster: %w", err)
	}
	var root *corev1.ConfigMap
	// A logical cluster that has just been made for the first time publishes it in a moment.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, rootCATimeout, true, func(ctx context.Context) (bool, error) {
		root, err = public.Get(ctx, rootCAName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of the logical cluster, ConfigMap %s/%s: %w", metav1.NamespacePublic, rootCAName, err)
	}
	out := &grants.PodWebhook{
		BaseURL: settings.Data[manifoldv1alpha1.SettingAdvertiseURL], CABundle: root.Data[rootCAKey], Cluster: cluster, Token: grants.TokenToCome,
	}
	if out.BaseURL == "" || out.CABundle == "" {
		return nil, fmt.Errorf("ConfigMaps %s and %s in namespace %s do not say where clusters find the logical cluster",
			manifoldv1alpha1.SettingsName, rootCAName, metav1.NamespacePublic)
	}
	return out, nil
}

// podWebhookToken makes a token for the cluster to ask with, and returns what is to be stored of it beside what is stored.
func (l *logical) podWebhookToken(ctx context.Context, cluster string) (token string, stored []byte, err error) {
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

// renewPodWebhook gives a cluster that asks about pods another token to ask with, and reports whether it asks.
func (l *logical) renewPodWebhook(ctx context.Context, below *physical.Cluster, cluster *manifoldv1alpha1.Cluster) (bool, error) {
	if !cluster.Spec.Allows.PodWebhooks {
		return false, nil
	}
	asks, err := below.AsksAboutPods(ctx, l.uid)
	if err != nil {
		return false, fmt.Errorf("read MutatingWebhookConfiguration %s in the cluster: %w", grants.PodWebhooksName(l.uid), err)
	}
	if !asks {
		return false, errors.New("the cluster does not ask about pods, though it was let: run \"manifold cluster join " + cluster.Name +
			" --cluster-kubeconfig FILE --pod-webhooks\"")
	}
	how, err := l.podWebhook(ctx, cluster.Name)
	if err != nil {
		return false, err
	}
	var stored []byte
	if how.Token, stored, err = l.podWebhookToken(ctx, cluster.Name); err != nil {
		return false, err
	}
	if err := l.storePodWebhookTokens(ctx, cluster.Name, stored); err != nil {
		return false, err
	}
	return true, below.AskAboutPods(ctx, l.uid, *how, &physical.Undo{})
}

// storePodWebhookTokens stores with which tokens a cluster may ask about pods.
func (l *logical) storePodWebhookTokens(ctx context.Context, cluster string, tokens []byte) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{podhooks.TokensKey: tokens}})
	if err != nil {
		return err
	}
	name := credentialName(cluster)
	if _, err = l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: grants.FieldManager}); err != nil {
		return fmt.Errorf("store the hash of the token by which the cluster asks about pods in Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return nil
}
