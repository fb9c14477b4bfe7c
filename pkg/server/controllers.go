package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/drain"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/removal"
	"github.com/manifold-dev/manifold/pkg/clusters/sights"
	"github.com/manifold-dev/manifold/pkg/custom"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/pipelines"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
	"github.com/manifold-dev/manifold/pkg/moves"
	multicluster "github.com/manifold-dev/manifold/pkg/multicluster/controller"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/controller"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/server/advertised"
	"github.com/manifold-dev/manifold/pkg/server/bootstrap"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/keys"
	"github.com/manifold-dev/manifold/pkg/server/limits"
	"github.com/manifold-dev/manifold/pkg/server/plugins"
	"github.com/manifold-dev/manifold/pkg/server/pushes"
	"github.com/manifold-dev/manifold/pkg/server/quota"
	"github.com/manifold-dev/manifold/pkg/server/stock"
	"github.com/manifold-dev/manifold/pkg/server/trials"
	summarycontroller "github.com/manifold-dev/manifold/pkg/summary/controller"
	"github.com/manifold-dev/manifold/pkg/syncer"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/volumes"
)

// controllers are Manifold's own. They are made before the server serves, since its storage asks the engine and the registry, and run
// once it does.
type controllers struct {
	identities *identity.Identities
	// clients are those of each controller, by its name.
	clients    map[string]clients
	informers  informers.SharedInformerFactory
	own        externalversions.SharedInformerFactory
	silence    limits.Silence
	advertised advertised.Address
	joined     listers.ClusterLister // syncers ask it so often that making it each time would cost more than the answer
	queues     work.Names
	// authorizer knows who may do what, by the informers.
	authorizer authorizer.Authorizer
	// servesMetrics reports whether the server answers for metrics.k8s.io.
	servesMetrics bool

	registry *clusters.Registry
	engine   *engine.Engine
	// contents are what revisions hold, and versions objects at the revisions that clusters hold, with the defaults that the server gives to what
	// is applied.
	contents *contents.Reader
	versions *held.Versions
	upstream *syncer.Upstream
	custom   *custom.Controller
	// clusterScoped are what applications have in no namespace.
	clusterScoped *objects.ClusterScoped
	events        record.EventBroadcaster
	// repositories are read, and written where promotions say so.
	repositories *git.Client
	// log is what is told of releases.
	log *logs.Controller
	// pushes tell applications that forges announce something.
	pushes *pushes.Announcer
	// pipelines shows what their targets run, and sights what of that clusters have by themselves.
	pipelines *pipelines.Controller
	sights    *sights.Sights
	// exports carries out ServiceExports, and imports sees what clusters have of those that they carry out themselves.
	exports *multicluster.Controller
	imports *sights.Sights
	// plugins are asked by others, nil where none are run.
	plugins *plugins.Running
	// drift is what is known of the drift of applications.
	drift drifts.Board
	parts []part
	// grace is how long a cluster may be silent.
	grace time.Duration
}

// part is one controller: it blocks until ctx ends.
type part struct {
	name string
	run  func(ctx context.Context) error
}

// newControllers makes the controllers over the server's informers. The order is that of dependence: each asks only earlier ones.
func newControllers(g *genericConfig, registry *clusters.Registry, c CompletedOptions) (*controllers, error) {
	clients, err := newClients(g.identities)
	if err != nil {
		return nil, err
	}
	m := &controllers{
		identities: g.identities, clients: clients,
		informers: g.informers, authorizer: g.Authorization.Authorizer,
		own:      externalversions.NewSharedInformerFactory(clients[v1alpha1.InformersUser].manifold, 0),
		registry: registry,
		queues:   c.queues(),
		silence:  c.silence, advertised: c.advertised,
		events: record.NewBroadcaster(),
		grace:  c.silence.GracePeriod, servesMetrics: g.servesMetrics(),
	}
	m.contents = contents.New(m.own.Delivery().V1alpha1().ApplicationRevisions().Lister(), m.informers.Core().V1().Secrets().Lister())
	revisions := m.own.Delivery().V1alpha1().ApplicationRevisions().Informer()
	if err := m.contents.Follow(revisions, revisions.LastSyncResourceVersion); err != nil {
		return nil, fmt.Errorf("follow the revisions of applications: %w", err)
	}
	m.versions = held.New(m.contents, legacyscheme.Scheme.Default)
	m.joined = m.own.Manifold().V1alpha1().Clusters().Lister()
	if m.engine, err = engine.New(engine.Options{
		Kube: m.informers, Manifold: m.own, Requested: m.registry.Requested, Levels: m.registry.Levels,
		Toleration: c.silence.Toleration, Unschedulable: c.silence.Unschedulable,
	}); err != nil {
		return nil, err
	}
	if m.upstream, err = m.newUpstream(c); err != nil {
		return nil, err
	}
	if m.repositories, err = newRepositories(c); err != nil {
		return nil, err
	}
	if m.log, err = m.newLog(); err != nil {
		return nil, err
	}
	plugins, err := m.newPlugins(c)
	if err != nil {
		return nil, err
	}
	if m.parts, err = m.newParts(c); err != nil {
		return nil, err
	}
	m.parts = append(m.parts, plugins...)
	promotions, err := m.newPromotions(c)
	if err != nil {
		return nil, err
	}
	m.parts = append(m.parts, part{"promotions", promotions.Run})
	if c.promotions.WebhookAddress != "" {
		m.parts = append(m.parts, promotionWebhooks(c, g.SecureServing, promotions))
	}
	return m, nil
}

func (m *controllers) newUpstream(c CompletedOptions) (*syncer.Upstream, error) {
	api, err := c.advertised.API(c.pki.Cert(keys.Authority))
	if err != nil {
		return nil, err
	}
	upstream, err := syncer.NewUpstream(m.informers, syncer.UpstreamOptions{
		Options: logical.Options{
			Overrides: m.engine.Overrides, Versions: m.versions, PodKey: c.podKey, Queues: m.queues, CustomKnown: m.customKnown,
		},
		API:   api,
		Moves: moves.Options{Leaving: m.leaving, Silent: m.silent, Lost: m.engine.Lost, Moves: m.engine.Moves},
		Outside: syncer.Outside{
			Drain: m.engine.Drain, Gateways: func(cluster string) []addresses.Gateway { return m.custom.Loops().Gateways(cluster) },
			GatewaysChanged: func(cluster string) { m.custom.LookAtGateways(cluster) },
		},
	})
	if err != nil {
		return nil, err
	}
	if err := upstream.WatchRevisions(m.informers, m.own); err != nil {
		return nil, err
	}
	if err := upstream.WatchNetworks(m.own); err != nil {
		return nil, err
	}
	return upstream, upstream.WatchPolicies(m.informers, m.own, m.engine.MaySelect)
}

// newParts makes what runs, each under a name of its own.
func (m *controllers) newParts(c CompletedOptions) ([]part, error) {
	recorder := m.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "manifold"})
	metadata, err := stock.NewMetadataInformers(m.identities.Loopback)
	if err != nil {
		return nil, err
	}
	placement, err := controller.New(controller.Options{
		Engine: m.engine, Kube: m.informers, Manifold: m.own, Client: m.clients[v1alpha1.PlacementUser].kube, Recorder: recorder,
		Policies: m.clients[v1alpha1.PlacementUser].manifold, FailoverRate: c.silence.FailoverRate, Queues: m.queues,
	})
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.CustomUser)))
	if err != nil {
		return nil, err
	}
	m.clusterScoped = objects.NewClusterScoped(metadata)
	m.sights, m.imports = m.newSights(), m.newImports()
	holds, err := held.NewCustoms(m.contents, m.own.Delivery().V1alpha1().Applications().Informer(), m.own.Delivery().V1alpha1().Releases().Informer())
	if err != nil {
		return nil, err
	}
	m.custom, err = custom.New(custom.Options{
		Engine: m.engine, Syncers: m.upstream, LogicalCluster: func() string { return m.upstream.LogicalCluster },
		Kube: m.informers, Manifold: m.own, Metadata: metadata, Indexers: indexers(), Client: dynamicClient, Recorder: recorder,
		Follow: placement.Follow, Trouble: placement.Trouble, Holds: holds.In, Leaving: m.leaving, Queues: m.queues,
	})
	if err != nil {
		return nil, err
	}
	if err := holds.Watch(func(application cache.ObjectName) { objects.LookAgain(m.custom.Objects(), application) }); err != nil {
		return nil, err
	}
	summaries, err := summarycontroller.New(summarycontroller.Options{
		Reports: m.upstream, Engine: m.engine, Versions: m.versions, Kube: m.informers, Manifold: m.own, Client: m.clients[v1alpha1.SummaryUser].kube, Recorder: recorder,
		Queues: m.queues,
	})
	if err != nil {
		return nil, err
	}
	handMade, err := volumes.New(volumes.Options{
		Upstream: m.upstream, Kube: m.informers, Manifold: m.own, Client: m.clients[v1alpha1.VolumesUser].kube, Recorder: recorder,
	})
	if err != nil {
		return nil, err
	}
	trials, err := trials.New(m.identities.As(v1alpha1.TrialUser))
	if err != nil {
		return nil, err
	}
	manager, err := clusters.New(clusters.Options{
		Client: m.clients[v1alpha1.ClustersUser].kube, Manifold: m.clients[v1alpha1.ClustersUser].manifold,
		Clusters: m.own.Manifold().V1alpha1().Clusters(), Nodes: m.informers.Core().V1().Nodes(),
		Registry: m.registry, Queues: m.queues,
		Runner: runners{&syncer.Runner{Options: syncer.Options{
			Upstream: m.upstream, Client: m.syncerClient, Recorder: recorder, Changed: summaries.Changed, Mirror: summaries.Mirror,
			Leaving: m.leaving, Unheard: m.unheard, Uses: m.custom.Loops().Uses, CustomChanged: m.custom.CustomChanged, Overrides: m.engine.Overrides,
			Admits: trials.Admits, Allows: m.allows,
			VolumeChanged: handMade.Changed, ClaimWanted: handMade.ClaimWanted,
		}}, m.custom.Loops(), m.sights, m.imports},
		GracePeriod: c.silence.GracePeriod, Fence: m.upstream.Fence, Requester: requester,
		MaxObjects: c.bounds.Objects, MaxBytes: c.bounds.Bytes.Value(),
	})
	if err != nil {
		return nil, err
	}
	removals, err := removal.New(removal.Options{
		Upstream: m.upstream, Queues: m.queues, Left: m.left, Custom: m.custom.Loops(), Kube: m.informers, Manifold: m.own,
		Client: m.clients[v1alpha1.RemovalUser].kube, Clusters: m.clients[v1alpha1.RemovalUser].manifold,
	})
	if err != nil {
		return nil, err
	}
	drains, err := drain.New(drain.Options{
		Upstream: m.upstream, Queues: m.queues, Decide: m.decide, DecideSynced: m.engine.HasSynced, Custom: m.custom.Loops().Placed,
		Manifold: m.own, Clusters: m.clients[v1alpha1.DrainUser].manifold,
	})
	if err != nil {
		return nil, err
	}
	applications, err := m.newApplications()
	if err != nil {
		return nil, err
	}
	foreign, err := m.foreignParts(holds)
	if err != nil {
		return nil, err
	}
	m.pushes = m.newAnnouncer()
	usage, err := quota.New(m.clients[v1alpha1.QuotaUser].kube, m.informers, m.queues)
	if err != nil {
		return nil, err
	}
	releases, err := m.releaseParts(c)
	if err != nil {
		return nil, err
	}
	delivery, err := m.newDelivery(c)
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(releases, delivery, foreign), []part{
		{"placement", placement.Run},
		{"summary", summaries.Run},
		{"volumes made by hand", handMade.Run},
		{"custom resources", m.custom.Run},
		{"clusters", manager.Run},
		{"removal of clusters", removals.Run},
		{"drains of clusters", drains.Run},
		{"usage of quotas", usage.Run},
		{"applications", applications.Run},
		{"pushes to repositories", m.pushes.Run},
		{"stock controllers", func(ctx context.Context) error {
			return stock.Run(ctx, m.identities.Loopback, m.informers, metadata, stock.Keys{
				ServiceAccountKey: c.pki.Key(keys.ServiceAccountKey), Authority: c.pki.Cert(keys.Authority), AuthorityKey: c.pki.Key(keys.Authority),
			})
		}},
	}...), nil
}

// foreignParts are the controllers of kinds that others have named, and that are defined when somebody wants them. Until then they have nothing to do.
func (m *controllers) foreignParts(holds *held.Customs) ([]part, error) {
	appDeployments, err := m.newAppDeployments()
	if err != nil {
		return nil, err
	}
	gitopsClusters, err := m.newGitopsClusters()
	if err != nil {
		return nil, err
	}
	if m.exports, err = m.newMultiCluster(); err != nil {
		return nil, err
	}
	if m.pipelines, err = m.newPipelines(holds); err != nil {
		return nil, err
	}
	return []part{
		{"application deployments", appDeployments.Run},
		{"gitops clusters", gitopsClusters.Run},
		{"exported Services", m.exports.Run},
		{"pipelines", m.pipelines.Run},
	}, nil
}

// clients are how a controller reaches the API under its own name.
type clients struct {
	kube     kubernetes.Interface
	manifold versioned.Interface
}

// newClients makes the clients of all controllers, by their names.
func newClients(ids *identity.Identities) (map[string]clients, error) {
	out := map[string]clients{}
	for _, name := range identity.Controllers() {
		kube, err := kubernetes.NewForConfig(ids.As(name))
		if err != nil {
			return nil, err
		}
		manifold, err := versioned.NewForConfig(asJSON(ids.As(name)))
		if err != nil {
			return nil, err
		}
		out[name] = clients{kube, manifold}
	}
	return out, nil
}

// run makes what a logical cluster starts with, learns the logical cluster's identity, and runs all parts until ctx ends or one fails.
func (m *controllers) run(ctx context.Context, ready func()) error {
	first, manager := m.clients[v1alpha1.BootstrapUser], m.clients[v1alpha1.ClustersUser]
	if err := bootstrap.Make(ctx, first.kube, first.manifold, bootstrap.Settings{
		ClusterToleration: m.silence.Toleration, UnschedulableToleration: m.silence.Unschedulable, AdvertiseURL: m.advertised.String(),
	}); err != nil {
		return fmt.Errorf("prepare the logical cluster: %w", err)
	}
	apis, err := apiregistration.NewForConfig(m.identities.As(v1alpha1.BootstrapUser))
	if err != nil {
		return err
	}
	if err := bootstrap.RegisterMetrics(ctx, apis.APIServices(), m.servesMetrics); err != nil {
		return fmt.Errorf("prepare the logical cluster: %w", err)
	}
	system, err := first.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("learn the identity of the logical cluster: %w", err)
	}
	m.upstream.LogicalCluster = string(system.UID)

	// The informers of our kinds are not started yet, so nothing has been decided.
	if err := clusters.Resume(ctx, manager.kube, manager.manifold, m.grace, time.Now()); err != nil {
		return fmt.Errorf("take up what was known of the clusters: %w", err)
	}

	m.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: m.clients[v1alpha1.EventsUser].kube.CoreV1().Events("")})
	defer m.events.Shutdown()
	// The server has started its own informers; ours among them are started now.
	m.informers.StartWithContext(ctx)
	m.own.StartWithContext(ctx)
	defer m.own.Shutdown()

	group, ctx := errgroup.WithContext(ctx)
	for _, p := range m.parts {
		group.Go(func() error {
			if err := p.run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		m.own.WaitForCacheSync(ctx.Done())
		m.informers.WaitForCacheSync(ctx.Done())
		if ctx.Err() == nil {
			ready()
		}
		return nil
	})
	return group.Wait()
}

func (m *controllers) syncerClient(cluster string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(m.identities.Syncer(cluster))
}

// leaving tells syncers whether their cluster is being removed.
func (m *controllers) leaving(cluster string) (bool, string) {
	c, err := m.joined.Get(cluster)
	if apierrors.IsNotFound(err) {
		return moves.Leaving(nil) // its syncer is about to end
	}
	if err != nil {
		return false, ""
	}
	return moves.Leaving(c)
}

// left has the syncer of a cluster look again at all that it holds of ours, and counts it, if it can.
func (m *controllers) left(cluster string) (count int, known bool) {
	s, running := m.upstream.Syncer(cluster)
	if !running || !s.HasSynced() {
		return 0, false
	}
	s.Resync()
	return s.Owned(), true
}

// customKnown tells syncers whether all workloads of custom kinds are known.
func (m *controllers) customKnown() bool { return m.custom.Known() }

// decide tells drains what would be decided about a workload now, and by which pin.
func (m *controllers) decide(w placement.Workload, current placement.Decision) (placement.Result, *v1alpha1.Pin, bool) {
	decided, known := m.engine.Decide(w, current)
	return decided.Result, decided.Pin(), known
}

// silent tells syncers whether a cluster can be told nothing at the moment.
func (m *controllers) silent(cluster string) bool {
	c, err := m.joined.Get(cluster)
	return err != nil || moves.Silent(c)
}

// unheard tells syncers whether their cluster is silent for longer than its grace period.
func (m *controllers) unheard(cluster string) bool {
	c, err := m.joined.Get(cluster)
	return err == nil && health.Unheard(c)
}

// allows tells syncers what the admin of a cluster lets come along there.
func (m *controllers) allows(cluster string) v1alpha1.ClusterAllows {
	c, err := m.joined.Get(cluster)
	if err != nil {
		return v1alpha1.ClusterAllows{}
	}
	return c.Spec.Allows
}

// runners run together for each cluster, and end together.
type runners []connection.Runner

// Run implements connection.Runner.
func (r runners) Run(ctx context.Context, c *connection.Connection) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, runner := range r {
		group.Go(func() error { return runner.Run(ctx, c) })
	}
	return group.Wait()
}

// asJSON is for clients of kinds that have no protobuf.
func asJSON(config *rest.Config) *rest.Config {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return config
}
