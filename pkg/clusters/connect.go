package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// kubeconfigKey is the key of the credential Secret that holds the kubeconfig. revokedKey is there instead once that has been revoked.
const (
	kubeconfigKey = "kubeconfig"
	revokedKey    = "revoked"
)

// syncConnection makes the session of a cluster fit its object and its credential.
func (m *Manager) syncConnection(ctx context.Context, name string) error {
	cluster, err := m.Clusters.Lister().Get(name)
	if apierrors.IsNotFound(err) {
		m.end(name)
		m.Registry.forget(name)
		m.written.forget(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read cluster %q: %w", name, err)
	}
	credential, problem, err := m.credential(ctx, cluster)
	if err != nil {
		return fmt.Errorf("connect cluster %q: %w", name, err)
	}
	last := m.session(name)
	whole := digestOf(cluster, credential, problem)
	if last != nil && last.whole == whole {
		return nil // as nearly always: every status that is written comes by here
	}
	token, rest := splitToken(credential)
	digest := digestOf(cluster, rest, problem)
	if last != nil && last.digest == digest && last.carryOn(token) {
		last.whole = whole
		return nil
	}
	m.end(name)
	m.begin(ctx, cluster, last, digest, credential, problem)
	m.session(name).whole = whole
	return nil
}

// credential returns the kubeconfig of a cluster, or the problem: what is wrong with it and what to do. An error says nothing about
// the credential, only that it could not be read.
func (m *Manager) credential(ctx context.Context, cluster *v1alpha1.Cluster) (kubeconfig []byte, problem, err error) {
	ref := cluster.Spec.Connection.SecretRef
	switch {
	case ref == nil:
		return nil, fmt.Errorf("spec.connection.secretRef is not set; run \"manifold cluster join %s\"", cluster.Name), nil
	case ref.Namespace != v1alpha1.SystemNamespace:
		// Whoever may write Secrets of some namespace must not be able to say where the server connects to.
		return nil, fmt.Errorf("spec.connection.secretRef names a Secret in namespace %q, only those in %q are used",
			ref.Namespace, v1alpha1.SystemNamespace), nil
	}
	secret, err := m.secret(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s/%s is missing; run \"manifold cluster join %s\"", ref.Namespace, ref.Name, cluster.Name), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if len(secret.Data[kubeconfigKey]) == 0 && len(secret.Data[revokedKey]) > 0 {
		return nil, fmt.Errorf("its credential has been revoked; to go on with the cluster, run \"manifold cluster join %s\"", cluster.Name), nil
	}
	if len(secret.Data[kubeconfigKey]) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no key %q; run \"manifold cluster join %s\"",
			ref.Namespace, ref.Name, kubeconfigKey, cluster.Name), nil
	}
	return secret.Data[kubeconfigKey], nil, nil
}

// secret reads a Secret from the cache, and if it is not there from the server: the Cluster and its Secret are made together, and
// the watches of the two need not tell of them in that order.
func (m *Manager) secret(ctx context.Context, ref *v1alpha1.SecretReference) (*corev1.Secret, error) {
	item, exists, err := m.secrets.GetStore().GetByKey(ref.Namespace + "/" + ref.Name)
	if secret, ok := item.(*corev1.Secret); err == nil && exists && ok {
		return secret, nil
	}
	return m.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// digestOf identifies what a session depends on: all of its credential but the token, with the next of which it goes on.
func digestOf(cluster *v1alpha1.Cluster, credential []byte, problem error) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%v\n%s", cluster.UID, problem, credential)
	return hex.EncodeToString(hash.Sum(nil))
}

// begin starts a session. last is the one before it, which has ended, or nil.
func (m *Manager) begin(ctx context.Context, cluster *v1alpha1.Cluster, last *session, digest string, credential []byte, problem error) {
	s := &session{
		manager: m,
		cluster: cluster,
		digest:  digest,
		uid:     cluster.Status.UID,
		cancel:  func() {},
		done:    make(chan struct{}),
		refresh: make(chan struct{}, 1),
		beat: &heartbeat{
			leases:   m.Client.CoordinationV1().Leases(v1alpha1.SystemNamespace),
			cluster:  cluster,
			holder:   m.Identity,
			duration: m.GracePeriod,
		},
	}
	if s.uid == "" && last != nil && last.cluster.UID == cluster.UID {
		s.uid = last.uid // known, but its way through the status is not yet over
	}
	if problem == nil {
		s.dialled, problem = m.dial(cluster.Name, credential, s.exceeds)
	}
	s.refused, _ = splitToken(credential)
	m.mu.Lock()
	m.sessions[cluster.Name] = s
	m.mu.Unlock()
	if problem != nil {
		s.refuse(problem)
		return
	}
	m.Registry.withdraw(cluster.Name, fmt.Sprintf("%s has not answered yet, try again in a moment", s.dialled.Host))
	ctx, s.cancel = context.WithCancel(ctx)
	m.group.Go(func() error {
		defer close(s.done)
		s.run(ctx)
		return nil
	})
}

func (m *Manager) dial(name string, kubeconfig []byte, exceeded func(error)) (*connection.Connection, error) {
	c, err := connection.Dial(name, kubeconfig, connection.Options{
		UserAgent: m.UserAgent, Requester: m.Requester, Limits: bounds.Options{Reads: m.reads, MostBytes: m.MaxBytes, Exceeded: exceeded},
	})
	if err != nil {
		return nil, fmt.Errorf("the stored credential cannot be used: %w; run \"manifold cluster join %s\" to renew it", err, name)
	}
	return c, nil
}

// refuse makes a session that consists of nothing but a problem.
func (s *session) refuse(problem error) {
	report := health.InvalidCredential(problem)
	s.mu.Lock()
	s.history = s.history.Record(report, s.manager.Clock.Now())
	s.mu.Unlock()
	close(s.done)
	s.manager.Registry.withdraw(s.cluster.Name, report.Message)
	s.manager.status.Add(s.cluster.Name)
}

// end ends the session of a cluster, if there is one, and waits for it.
func (m *Manager) end(name string) {
	m.mu.Lock()
	s := m.sessions[name]
	delete(m.sessions, name)
	m.mu.Unlock()
	if s != nil {
		s.cancel()
		<-s.done
	}
}

// olderTwin returns the name of another Cluster that stands for the same physical cluster and has joined before this one.
func (m *Manager) olderTwin(cluster *v1alpha1.Cluster, uid string) string {
	return olderTwin(cluster, uid, m.allClusters())
}

func olderTwin(cluster *v1alpha1.Cluster, uid string, all []*v1alpha1.Cluster) string {
	for _, other := range all {
		if other.Name == cluster.Name || other.Status.UID != uid {
			continue
		}
		age := other.CreationTimestamp.Compare(cluster.CreationTimestamp.Time)
		if age < 0 || age == 0 && strings.Compare(other.Name, cluster.Name) < 0 {
			return other.Name
		}
	}
	return ""
}
