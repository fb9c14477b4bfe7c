package podwebhooks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// Askers knows which clusters may ask about pods, and the pods that they ask about.
type Askers struct {
	secrets  corelisters.SecretLister
	joined   listers.ClusterLister
	upstream *syncer.Upstream
}

// NewAskers reads tokens of clusters from the informers.
func NewAskers(informers informers.SharedInformerFactory, joined listers.ClusterLister, upstream *syncer.Upstream) *Askers {
	return &Askers{secrets: informers.Core().V1().Secrets().Lister(), joined: joined, upstream: upstream}
}

// Accepts implements LogicalCluster.
func (p *Askers) Accepts(cluster, token string) bool {
	joined, err := p.joined.Get(cluster)
	if err != nil || !joined.Spec.Allows.PodWebhooks || joined.Spec.Connection.SecretRef == nil {
		return false
	}
	ref := joined.Spec.Connection.SecretRef
	secret, err := p.secrets.Secrets(ref.Namespace).Get(ref.Name)
	return err == nil && podhooks.Accepts(secret.Data[podhooks.TokensKey], token, time.Now())
}

// Newcomer implements LogicalCluster.
func (p *Askers) Newcomer(ctx context.Context, cluster string, pod *corev1.Pod) (*syncer.Newcomer, error) {
	s, ok := p.upstream.Syncer(cluster)
	if !ok {
		return nil, fmt.Errorf("cluster %q is not connected to this process", cluster)
	}
	return s.Newcomer(ctx, pod)
}
