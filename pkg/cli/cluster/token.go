package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
)

const (
	// defaultLifetime is that of a token. The server renews it after half of that, so it may be down for as long as the other half.
	defaultLifetime = 7 * 24 * time.Hour
	// shortestLifetime is what the API takes at the least.
	shortestLifetime = 10 * time.Minute
	// takenUp bounds how long a token that was replaced is kept for the server to go on with the next one.
	takenUp = 15 * time.Second
)

// checkLifetime refuses what no API server takes.
func checkLifetime(lifetime time.Duration) error {
	if lifetime < shortestLifetime {
		return fmt.Errorf("--token-lifetime must be at least %s, not %s", shortestLifetime, lifetime)
	}
	return nil
}

// replaceToken stores another token in the credential of a cluster, and leaves the rest of that as it is.
func (l *logical) replaceToken(ctx context.Context, cluster, next string) error {
	secrets, name := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace), credentialName(cluster)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the server may renew it at the same moment
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data[kubeconfigKey]) == 0 {
			return fmt.Errorf("it holds no credential; run \"manifold cluster join %s\"", cluster)
		}
		token, _, err := bearer.Split(secret.Data[kubeconfigKey])
		if err != nil {
			return err
		}
		if secret.Data[kubeconfigKey], err = bearer.Replace(secret.Data[kubeconfigKey], token, next); err != nil {
			return err
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: grants.FieldManager})
		return err
	})
	if err != nil {
		return fmt.Errorf("store the token in Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return nil
}

// awaitTakenUp waits until the server uses a token, so that none of its requests carries the one that ends. It does not wait for long: who
// rotates tokens has a reason not to.
func (l *logical) awaitTakenUp(ctx context.Context, cluster string, t physical.Token) {
	_ = l.follow(ctx, cluster, takenUp, func(c *manifoldv1alpha1.Cluster) bool {
		return c == nil || bearer.NamesSecret(meta.FindStatusCondition(c.Status.Conditions, manifoldv1alpha1.ClusterCredentialValid), t.Claims)
	})
}
