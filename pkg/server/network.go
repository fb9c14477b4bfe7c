package server

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	clientgoinformers "k8s.io/client-go/informers"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldlisters "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/reach"
)

// network is the way from the API server to what runs in clusters.
type network struct {
	registry *clusters.Registry
	listed   manifoldlisters.ClusterLister
}

// Cluster implements reach.Clusters.
func (n *network) Cluster(name string) (reach.Cluster, error) {
	found, err := n.registry.Get(name)
	if err != nil {
		return reach.Cluster{}, err
	}
	return reach.Cluster{Host: found.Host, Transport: found.UpgradeTransport, Client: found.Client}, nil
}

// identityFrom returns what tells by the caches of the server who the logical cluster is.
func identityFrom(informers clientgoinformers.SharedInformerFactory) ours.Identity {
	namespaces := informers.Core().V1().Namespaces().Lister()
	return func() (string, error) {
		system, err := namespaces.Get(metav1.NamespaceSystem)
		if err != nil {
			return "", err
		}
		return string(system.UID), nil
	}
}

// Ready implements reach.Clusters.
func (n *network) Ready(name string) bool {
	cluster, err := n.listed.Get(name)
	return err == nil && meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ClusterReady)
}

// requester tells whose request to the logical cluster a request to a cluster is made for.
func requester(ctx context.Context) (name, auditID string) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return "", ""
	}
	return u.GetName(), audit.GetAuditIDTruncated(ctx)
}

// resolver finds the pods behind Services that webhooks, conversions and aggregated APIs name, and leaves what is not in a cluster to stock.
func (n *network) resolver(informers clientgoinformers.SharedInformerFactory, slices proxy.EndpointSliceGetter, stock webhook.ServiceResolver,
) webhook.ServiceResolver {
	core := informers.Core().V1()
	return &reach.Resolver{Services: core.Services().Lister(), Slices: slices, Pods: core.Pods().Lister(), Clusters: n, Stock: stock}
}

// dialBy has a transport reach what resolver answers. Whoever uses the transport's dialer asks for it later.
func (n *network) dialBy(transport *http.Transport, informers clientgoinformers.SharedInformerFactory) {
	dialer := &reach.Dialer{
		Pods: informers.Core().V1().Pods().Lister(), Clusters: n, Identity: identityFrom(informers), Stock: transport.DialContext,
	}
	transport.DialContext = dialer.Dial
}

// reviewToken is a podtokens.Reviewer.
func (n *network) reviewToken(ctx context.Context, cluster string, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	connection, err := connections{n.registry, n.listed}.Connection(cluster)
	if err != nil {
		return nil, err
	}
	return connection.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
}
