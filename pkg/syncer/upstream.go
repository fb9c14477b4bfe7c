package syncer

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
	"github.com/manifold-dev/manifold/pkg/syncer/access"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
	"github.com/manifold-dev/manifold/pkg/syncer/guard"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/route"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
)

// Resources that matter by themselves.
var (
	claimResource       = identity.Claims
	deploymentResource  = identity.Deployments
	namespaceResource   = identity.Namespaces
	podResource         = identity.Pods
	replicaSetResource  = identity.ReplicaSets
	secretResource      = identity.Secrets
	statefulSetResource = identity.StatefulSets
)

var _ reports.Clusters = (*Upstream)(nil)

// Upstream is the logical cluster as the syncers of one process see it. Its caches are shared informers; nothing in them may be changed.
type Upstream struct {
	*logical.Cluster
	*connected

	// Demand answers who needs what.
	Demand *demand.Graph
	// Access says which pods call the API of the logical cluster.
	Access *access.Access
	// Services knows where Services lead to.
	Services *services.Services
	// Endpoints knows what Services have in the other clusters of a network.
	Endpoints *endpoints.Endpoints
	synced    []cache.InformerSynced
	classes   classes.Set
	router    *route.Router

	// Fleets says what each cluster is to hold now of a workload that moves.
	Fleets *moves.Fleets
	// outside is what is known of addresses from outside elsewhere.
	outside Outside
}

// UpstreamOptions say what an Upstream works with. Its functions are asked once the informers have started, not before.
type UpstreamOptions struct {
	logical.Options
	// API is how pods reach the logical cluster. Without a Host none are told.
	API projection.API
	// Moves says what is asked about moves. Which clusters are connected is known here.
	Moves moves.Options
	Outside
}

// Outside is what is asked, and told, about how users reach workloads from outside. Each of it may be nil.
type Outside struct {
	// Drain returns how long the policy of a workload has its last replicas stay behind addresses that have left their status; false if it says nothing.
	Drain func(kind projection.Kind, above projection.Object) (time.Duration, bool)
	// Gateways returns those of the Gateway API that a cluster has.
	Gateways func(cluster string) []addresses.Gateway
	// GatewaysChanged is told that what a cluster runs behind Gateways has changed. It returns at once.
	GatewaysChanged func(cluster string)
}

// NewUpstream registers with the informers, which the caller starts afterwards.
func NewUpstream(factory informers.SharedInformerFactory, o UpstreamOptions) (*Upstream, error) {
	caches, err := logical.New(factory, o.Options)
	if err != nil {
		return nil, err
	}
	u := &Upstream{
		Cluster: caches, connected: &connected{syncers: map[string]*Syncer{}},
		Access: &access.Access{API: o.API, Above: caches}, Services: &services.Services{}, outside: o.Outside,
	}
	u.Endpoints = &endpoints.Endpoints{Above: caches, Services: u.Services, Taken: u.taken}
	u.Demand = &demand.Graph{Cluster: caches, Clusters: u.connected, Endpoints: u.Endpoints}
	u.router = &route.Router{
		Demand: u.Demand, Cluster: u.routed, Clusters: u.allRouted,
		Networks: &route.Networks{Demand: u.Demand, Clusters: u.allRouted},
	}
	o.Moves.Cluster, o.Moves.Clusters, o.Moves.Version = u.mover, u.movers, caches.Versions.AsHeld
	o.Moves.Address = u.address
	u.Fleets = moves.New(o.Moves)
	if u.classes, err = classes.Of(factory); err != nil {
		return nil, err
	}
	for _, informer := range u.classes {
		u.synced = append(u.synced, informer.HasSynced)
	}
	if err := u.watchKinds(factory); err != nil {
		return nil, err
	}
	registered := factory.Admissionregistration().V1()
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{u.classes[identity.Priorities], u.router.PriorityClasses()},
		{factory.Core().V1().PersistentVolumes().Informer(), u.router.Volumes()},
		{factory.Apps().V1().ReplicaSets().Informer(), u.router.ReplicaSets()},
		{factory.Core().V1().Pods().Informer(), u.router.Pods()},
		{factory.Core().V1().PersistentVolumeClaims().Informer(), u.router.VolumeClaims()},
		{factory.Apps().V1().ControllerRevisions().Informer(), caches.Departures()},
		{factory.Core().V1().Services().Informer(), u.router.Addresses()},
		{factory.Networking().V1().Ingresses().Informer(), u.router.Addresses()},
		{registered.MutatingWebhookConfigurations().Informer(), u.router.Webhooks()},
		{registered.ValidatingWebhookConfigurations().Informer(), u.router.Webhooks()},
	} {
		if err := u.handle(watch.informer, watch.handler); err != nil {
			return nil, err
		}
	}
	if err := u.Access.Watch(factory, u.router.RightsChanged, u.handle); err != nil {
		return nil, err
	}
	slices := factory.Discovery().V1().EndpointSlices().Informer()
	if err := u.Services.Watch(slices, u.router.WakeOne, u.handle); err != nil {
		return nil, err
	}
	return u, u.handle(slices, u.router.Networks.Slices())
}

// WatchNetworks has Services lead to the other clusters of a network. It registers with the informers, which the caller starts afterwards.
func (u *Upstream) WatchNetworks(manifold externalversions.SharedInformerFactory) error {
	return u.handle(manifold.Manifold().V1alpha1().Clusters().Informer(), u.router.Networks.Members())
}

// watchKinds has changes of all projected kinds routed.
func (u *Upstream) watchKinds(factory informers.SharedInformerFactory) error {
	for _, kind := range projection.Kinds() {
		generic, err := factory.ForResource(kind.Resource)
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		informer := generic.Informer()
		if kind.ReadsManagers {
			// The server's informers drop the managed fields of everything otherwise.
			if err := informer.SetTransform(func(obj any) (any, error) { return obj, nil }); err != nil {
				return fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
			}
		}
		if err := u.handle(informer, u.router.Objects(kind)); err != nil {
			return err
		}
	}
	return nil
}

// WatchPolicies has workloads projected again whose overrides or way to move may have changed: by the policy itself, or because another one
// selects them or the cluster now. Selects returns which workloads any of some policies may select. It registers with the informers, which the caller
// starts afterwards.
func (u *Upstream) WatchPolicies(
	kube informers.SharedInformerFactory, manifold externalversions.SharedInformerFactory,
	selects func(policies ...metav1.Object) func(projection.Kind, projection.Object) bool,
) error {
	u.router.Selects = selects
	own := manifold.Manifold().V1alpha1()
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{own.PlacementPolicies().Informer(), u.router.Policies()},
		{own.ClusterPlacementPolicies().Informer(), u.router.Policies()},
		{own.Clusters().Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: u.router.ClusterChanged}},
		{kube.Core().V1().Namespaces().Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: u.router.NamespaceChanged}},
	} {
		if err := u.handle(watch.informer, watch.handler); err != nil {
			return err
		}
	}
	return nil
}

// WatchRevisions has what clusters are held at looked at when it can be read. It registers with the informers, which the caller starts afterwards.
func (u *Upstream) WatchRevisions(kube informers.SharedInformerFactory, manifold externalversions.SharedInformerFactory) error {
	revisions := manifold.Delivery().V1alpha1().ApplicationRevisions().Informer()
	if err := revisions.AddIndexers(cache.Indexers{route.ByHiddenManifest: route.IndexHiddenManifests}); err != nil {
		return fmt.Errorf("index revisions by Secret: %w", err)
	}
	if err := u.handle(revisions, u.router.Revisions()); err != nil {
		return err
	}
	return u.handle(kube.Core().V1().Secrets().Informer(), u.router.HiddenManifests(revisions.GetIndexer()))
}

func (u *Upstream) handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch the logical cluster: %w", err)
	}
	u.synced = append(u.synced, registration.HasSynced)
	return nil
}

// HasSynced reports whether everything that existed at the start is known.
func (u *Upstream) HasSynced() bool {
	for _, synced := range u.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Guard says what the identities of clusters may write. Complete gives a pod the defaults that it gets on its way to storage; it may be nil.
func (u *Upstream) Guard(complete func(*corev1.Pod)) guard.Guard {
	return guard.Guard{Cluster: u.Cluster, Synced: u.HasSynced, NeededIn: u.Demand.NeededIn, Complete: complete}
}

// lives reports whether the pod that a mirror shows is there, by the syncer of its cluster.
func (u *Upstream) lives(shown *corev1.Pod) bool {
	s, running := u.Syncer(identity.ShownFrom(shown))
	if !running || shown.DeletionTimestamp != nil {
		return false
	}
	pod := s.below.Pod(cache.MetaObjectToName(shown))
	return pod != nil && pod.UID == shown.UID && pod.DeletionTimestamp == nil
}

// MayHave implements reports.Clusters.
func (u *Upstream) MayHave(key identity.Key, above projection.Object, cluster string) bool {
	return u.Demand.MayHave(key, above, cluster)
}
