package server

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/podtokens"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// podCallers knows the pods that call the API.
type podCallers struct {
	identity ours.Identity
	pods     corelisters.PodLister
	accounts corelisters.ServiceAccountLister
	// upstream knows which of them are to. It is set before the server serves.
	upstream *syncer.Upstream
}

// addPodTokens has generic recognise the tokens of pods in clusters.
func addPodTokens(generic *genericapiserver.Config, informers informers.SharedInformerFactory, net *network) *podCallers {
	core := informers.Core().V1()
	callers := &podCallers{identity: identityFrom(informers), pods: core.Pods().Lister(), accounts: core.ServiceAccounts().Lister()}
	authentication := &generic.Authentication
	authentication.Authenticator = podtokens.New(callers, net.reviewToken, authentication.APIAudiences).Before(authentication.Authenticator)
	return callers
}

// reviewToken is a podtokens.Reviewer.
func (n *network) reviewToken(ctx context.Context, cluster string, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	connection, err := connections{n.registry, n.listed}.Connection(cluster)
	if err != nil {
		return nil, err
	}
	return connection.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
}

// Identity implements podtokens.LogicalCluster.
func (p *podCallers) Identity() (string, error) { return p.identity() }

// Pod implements podtokens.LogicalCluster.
func (p *podCallers) Pod(namespace, name string) *corev1.Pod {
	pod, err := p.pods.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	return pod
}

// Account implements podtokens.LogicalCluster.
func (p *podCallers) Account(namespace, name string) *corev1.ServiceAccount {
	account, err := p.accounts.ServiceAccounts(namespace).Get(name)
	if err != nil {
		return nil
	}
	return account
}

// CallsAPI implements podtokens.LogicalCluster.
func (p *podCallers) CallsAPI(pod *corev1.Pod) bool { return p.upstream.CallsAPI(pod) }
