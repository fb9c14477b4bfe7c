package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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

// rivals is how long commands that replace the credential of one cluster at the same time give way to each other.
var rivals = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 1, Steps: 10}

// replacing replaces the credential of a cluster by one attempt after another, until one does not end with a conflict. In an attempt, the
// credential that is there is read first, then a token is made, then the tokens are looked up that are there beside it, and then it is stored,
// unless another one has been since the first step. So no token that was looked up can be stored any more once this one is, and ending those
// takes nobody else's credential away.
func replacing(attempt func() error) error {
	return retry.OnError(rivals, apierrors.IsConflict, attempt)
}

// credential returns what holds the credential of a cluster, nil if there is nothing.
func (l *logical) credential(ctx context.Context, cluster string) (*corev1.Secret, error) {
	name := credentialName(cluster)
	secret, err := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return secret, nil
}

// replaceToken stores another token in the credential of a cluster as it was before, and leaves the rest of that as it is. It is a conflict
// if that has changed since then.
func (l *logical) replaceToken(ctx context.Context, cluster string, before *corev1.Secret, next string) error {
	err := func() error {
		if before == nil || len(before.Data[kubeconfigKey]) == 0 {
			return fmt.Errorf("it holds no credential; run \"manifold cluster join %s\"", cluster)
		}
		token, _, err := bearer.Split(before.Data[kubeconfigKey])
		if err != nil {
			return err
		}
		secret := before.DeepCopy()
		if secret.Data[kubeconfigKey], err = bearer.Replace(secret.Data[kubeconfigKey], token, next); err != nil {
			return err
		}
		_, err = l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: grants.FieldManager})
		return err
	}()
	if err != nil {
		return fmt.Errorf("store the token in Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, credentialName(cluster), err)
	}
	return nil
}

// awaitTakenUp waits until the server uses a token, so that none of its requests carries the one that ends. It does not wait for long: who
// rotates tokens has a reason not to.
func (l *logical) awaitTakenUp(ctx context.Context, cluster string, t physical.Token) {
	_ = l.follow(ctx, cluster, takenUp, func(c *manifoldv1alpha1.Cluster) bool {
		return c == nil || reachedWith(c, t.Claims)
	})
}

// reachedWith reports whether the server reaches a cluster with a token that ends with the same Secret as this one.
func reachedWith(c *manifoldv1alpha1.Cluster, token bearer.Claims) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, manifoldv1alpha1.ClusterCredentialValid) && c.Status.TokenSecret == token.BoundTo()
}
