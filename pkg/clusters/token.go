package clusters

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

const (
	// renewTimeout bounds one attempt to renew a token.
	renewTimeout = time.Minute
	// shortestLife is what the API takes as a lifetime at the least.
	shortestLife = 600
	// retryJitter keeps many clusters from being tried again all at once.
	retryJitter = 0.2
)

// splitToken takes the token out of a kubeconfig. Of one that cannot be read, all is the rest.
func splitToken(kubeconfig []byte) (token string, rest []byte) {
	token, rest, err := bearer.Split(kubeconfig)
	if err != nil {
		return "", kubeconfig
	}
	return token, rest
}

// carryOn has the session go on with a token, and reports whether it does. One that is not well begins anew: the last token may be why.
func (s *session) carryOn(token string) bool {
	if s.dialled == nil {
		return token == s.refused
	}
	if present, _ := s.dialled.Token.Token(); present == token {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil || s.history.Last == nil || !s.history.Last.OK() {
		return false
	}
	s.dialled.Token.Set(token)
	s.renewErr = nil
	s.manager.status.Add(s.cluster.Name)
	return true
}

// keepToken renews the token of a connection well before it ends, until ctx ends. One that does not end, or ends with nothing but itself, is
// left as it is.
func (l *live) keepToken(ctx context.Context) {
	source, clock := l.connection.Token, l.session.manager.Clock
	for ctx.Err() == nil {
		token, changed := source.Token()
		claims, err := bearer.Parse(token)
		if err != nil || !claims.Renewable() {
			awaitToken(ctx, changed, nil)
			continue
		}
		delay := claims.Due(rand.Float64()).Sub(clock.Now())
		for {
			timer := clock.NewTimer(delay)
			waited := awaitToken(ctx, changed, timer.C())
			timer.Stop()
			if !waited {
				break
			}
			err := l.renewToken(ctx, token, claims)
			if ctx.Err() != nil {
				return
			}
			l.session.setRenewal(err)
			if err == nil {
				klog.FromContext(ctx).V(2).Info("Renewed the token")
				break
			}
			delay = wait.Jitter(claims.Again(), retryJitter)
			klog.FromContext(ctx).Error(err, "Cannot renew the token; trying again", "delay", delay)
		}
	}
}

// awaitToken waits until it is time, and reports that, or until there is another token or ctx ends.
func awaitToken(ctx context.Context, changed <-chan struct{}, due <-chan time.Time) bool {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-due:
		return true
	}
	return false
}

// renewToken asks the cluster for another token of the same ServiceAccount that ends with the same Secret, tries it, stores it, and has
// requests carry it from then on.
func (l *live) renewToken(ctx context.Context, token string, claims bearer.Claims) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	c, m := l.connection, l.session.manager
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(max(claims.Seconds(), shortestLife)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			Kind: "Secret", APIVersion: "v1", Name: claims.Secret, UID: claims.SecretUID,
		},
	}}
	answer, err := c.Client.CoreV1().ServiceAccounts(claims.Namespace).CreateToken(ctx, claims.Account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for a token of ServiceAccount %s/%s: %w", claims.Namespace, claims.Account, err)
	}
	next, err := bearer.Parse(answer.Status.Token)
	if err != nil {
		return fmt.Errorf("the token that the cluster gave cannot be read: %w", err)
	}
	if err := claims.Follows(next); err != nil {
		return err
	}
	system, err := c.Client.CoreV1().Namespaces().Get(bearer.Trying(ctx, answer.Status.Token), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("try the token that the cluster gave: %w", err)
	}
	if system.UID != c.UID {
		return errors.New("try the token that the cluster gave: another cluster answered")
	}
	if err := m.storeToken(ctx, c.Name, token, answer.Status.Token); err != nil {
		return err
	}
	c.Token.Set(answer.Status.Token)
	return nil
}

// storeToken replaces the token in the stored credential of a cluster, unless somebody else has.
func (m *Manager) storeToken(ctx context.Context, name, token, next string) error {
	cluster, err := m.Clusters.Lister().Get(name)
	if err != nil {
		return fmt.Errorf("read cluster %q: %w", name, err)
	}
	ref := cluster.Spec.Connection.SecretRef
	if ref == nil || ref.Namespace != v1alpha1.SystemNamespace {
		return errors.New("store the token: the cluster no longer has a credential")
	}
	secrets := m.Client.CoreV1().Secrets(ref.Namespace)
	secret, err := secrets.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	kubeconfig, err := bearer.Replace(secret.Data[kubeconfigKey], token, next)
	if err != nil {
		return fmt.Errorf("store the token in Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	secret.Data[kubeconfigKey] = kubeconfig
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}); err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	return nil
}

func (s *session) setRenewal(err error) {
	s.mu.Lock()
	s.renewErr = err
	s.mu.Unlock()
	s.manager.status.Add(s.cluster.Name)
}

// observeCredential tells how long the cluster can be reached with the credential. The caller holds the lock.
func (s *session) observeCredential(seen *status.Observation, now time.Time) {
	if s.history.Last == nil {
		return // nobody has tried it yet
	}
	if s.dialled == nil {
		seen.Credential = &metav1.Condition{
			Type: v1alpha1.ClusterCredentialValid, Status: metav1.ConditionFalse, Reason: health.ReasonInvalidCredential, Message: s.history.Last.Message,
		}
		return
	}
	token, _ := s.dialled.Token.Token()
	seen.Credential = status.Credential(s.cluster.Name, token, s.history.Last.Reason == health.ReasonUnauthorized, s.renewErr, now)
	if claims, err := bearer.Parse(token); err == nil {
		seen.TokenSecret = claims.BoundTo()
	}
}
