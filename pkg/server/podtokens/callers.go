package podtokens

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/manifold-dev/manifold/pkg/server/ours"
)

// Callers knows the pods that call the API.
type Callers struct {
	identity ours.Identity
	pods     corelisters.PodLister
	accounts corelisters.ServiceAccountLister
	// callsAPI reports which of them are to.
	callsAPI func(*corev1.Pod) bool
}

// NewCallers reads who the logical cluster is by identity, and everything else from the informers.
func NewCallers(identity ours.Identity, informers informers.SharedInformerFactory, callsAPI func(*corev1.Pod) bool) *Callers {
	core := informers.Core().V1()
	return &Callers{identity: identity, pods: core.Pods().Lister(), accounts: core.ServiceAccounts().Lister(), callsAPI: callsAPI}
}

// Identity implements LogicalCluster.
func (p *Callers) Identity() (string, error) { return p.identity() }

// Pod implements LogicalCluster.
func (p *Callers) Pod(namespace, name string) *corev1.Pod {
	pod, err := p.pods.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	return pod
}

// Account implements LogicalCluster.
func (p *Callers) Account(namespace, name string) *corev1.ServiceAccount {
	account, err := p.accounts.ServiceAccounts(namespace).Get(name)
	if err != nil {
		return nil
	}
	return account
}

// CallsAPI implements LogicalCluster.
func (p *Callers) CallsAPI(pod *corev1.Pod) bool { return p.callsAPI(pod) }
