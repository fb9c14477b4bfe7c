package server

import (
	"fmt"
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	storageviews "github.com/manifold-dev/manifold/pkg/server/storage/views"
	"github.com/manifold-dev/manifold/pkg/server/views"
)

// serveViews serves the logical cluster as each cluster is to see it, below a path for each. The chain that there is by now comes to lie between the filter
// that takes the path off and the one that asks for the right to it.
func (g *genericConfig) serveViews(m *controllers, viewed *storageviews.Viewed) error {
	ends, err := views.NewEnds(m.own.Manifold().V1alpha1().Clusters().Informer())
	if err != nil {
		return fmt.Errorf("watch Clusters for those who use their views: %w", err)
	}
	cluster := func(name string) *v1alpha1.Cluster {
		found, err := m.joined.Get(name)
		if err != nil {
			return nil // a cache knows no other error than that there is none
		}
		return found
	}
	authentication := &g.Authentication
	authentication.Authenticator = views.Authenticator(authentication.Authenticator, authentication.APIAudiences)
	build := g.BuildHandlerChainFunc
	g.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return views.Strip(build(views.New(views.Options{
			Cluster: cluster, Authorizer: c.Authorization.Authorizer, Serializer: c.Serializer, LongRunning: c.LongRunningFunc, Objects: viewed, Ends: ends,
		}, api), c))
	}
	return nil
}

// projected returns what a cluster is to hold of a workload, as its syncer does and as manifold explain prints it. A workload that is not decided about yet is
// taken for the cluster's alone. Nothing of it is held back on its way there.
func (m *controllers) projected(kind projection.Kind, above projection.Object, cluster string) (projection.Object, error) {
	version, err := m.versions.In(kind, above, cluster)
	if err != nil {
		return nil, err
	}
	decision := identity.DecisionOf(above)
	if _, decided := decision[cluster]; !decided {
		replicas := kind.Demand(above).Replicas
		if view, has := identity.ViewsOf(above).Of(cluster); has {
			replicas = ptr.Deref(view.Replicas, replicas)
		}
		decision = placement.Decision{cluster: {Replicas: replicas}}
	}
	overrides, err := m.engine.Overrides(kind, version.Object, cluster)
	if err != nil {
		return nil, err
	}
	logicalCluster, err := identityFrom(m.informers)()
	if err != nil {
		return nil, fmt.Errorf("who this logical cluster is: %w", err)
	}
	part := projection.Part{
		API:   m.upstream.Access.Of(identity.Workload{Kind: kind, Object: version.Object}, nil),
		Share: decision[cluster], Decision: decision, Overrides: overrides, Revision: version.Mark(),
	}
	target := projection.Target{LogicalCluster: logicalCluster, Cluster: cluster}
	out, err := kind.Project(version.Object, part, target)
	if err != nil {
		return nil, err
	}
	if part.LeftOut = kind.LeftOut(out, nil, m.upstream.Demand.Offers); len(part.LeftOut) > 0 {
		return kind.Project(version.Object, part, target)
	}
	return out, nil
}
