package physical

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// credentialTimeout bounds the wait for the cluster to honour a token.
const credentialTimeout = 15 * time.Second

// Kubeconfig returns a self-contained kubeconfig with a token for the cluster of that name, once the cluster has honoured it, and enforces the fence.
func (c *Cluster) Kubeconfig(ctx context.Context, cluster string, logical types.UID, token Token) ([]byte, error) {
	name := grants.Name(logical)
	config := c.access.withToken(cluster, name, token.Value)
	if err := c.tryCredential(ctx, config); err != nil {
		return nil, fmt.Errorf("try the new credential of ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	if err := tryFence(ctx, config); err != nil {
		return nil, fmt.Errorf("try ValidatingAdmissionPolicy %s: %w", name, err)
	}
	return clientcmd.Write(*config)
}

// Try asks the cluster of that name who it is with a token.
func (c *Cluster) Try(ctx context.Context, cluster string, token Token) error {
	return c.tryCredential(ctx, c.access.withToken(cluster, token.Account, token.Value))
}

// tryCredential asks the cluster who it is with the credential that will be stored. A fresh token and a fresh binding take a
// moment to reach an API server's caches, so refusals are only believed after a while.
func (c *Cluster) tryCredential(ctx context.Context, kubeconfig *clientcmdapi.Config) error {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		var uid types.UID
		uid, last = UID(ctx, client)
		switch {
		case apierrors.IsForbidden(last), apierrors.IsUnauthorized(last):
			return false, nil
		case last == nil && uid != c.UID:
			return false, errors.New("another cluster answered; the address must lead to one cluster only")
		}
		return last == nil, last
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// tryFence waits until the cluster denies the credential what the fence is there to deny: an API server takes a second or so until a
// new admission policy counts. The attempt is a dry run of what an earlier fence allowed.
func tryFence(ctx context.Context, kubeconfig *clientcmdapi.Config) error {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "denied-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return false, nil
		case apierrors.IsForbidden(err):
			// A role that does not count yet forbids too.
			return strings.Contains(err.Error(), grants.StrangeDenial), nil
		case apierrors.IsUnauthorized(err):
			return false, nil // a fresh token, at another API server than that which took it a moment ago
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the cluster does not enforce it within %s; is the admission plugin of that name on in its API server?",
			credentialTimeout)
	}
	return err
}
