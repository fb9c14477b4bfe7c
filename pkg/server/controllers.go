package server

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/custom"
	"github.com/manifold-dev/manifold/pkg/placement/controller"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	summarycontroller "github.com/manifold-dev/manifold/pkg/summary/controller"
	"github.com/manifold-dev/manifold/pkg/syncer"
	"github.com/manifold-dev/manifold/pkg/syncer/drain"
	"github.com/manifold-dev/manifold/pkg/syncer/removal"
	"github.com/manifold-dev/manifold/pkg/syncer/volumes"
)

// controllers are Manifold's own. They are made before the server serves, since its storage asks the engine and the registry, and run
// once it does.
type controllers struct {
	identities *identities
	kube       kubernetes.Interface
	manifold   versioned.Interface
	informers  informers.SharedInformerFactory
	own        externalversions.SharedInformerFactory
	silence    Silence
	advertised advertised
	joined     listers.ClusterLister // syncers ask it so often that making it each time would cost more than the answer
	// servesMetrics reports whether the server answers for metrics.k8s.io.
	servesMetrics bool

	registry *clusters.Registry
	engine   *engine.Engine
	upstream *syncer.Upstream
	custom   *custom.Controller
	events   record.EventBroadcaster
	parts    []part
	// grace is how long a cluster may be silent.
	grace time.Duration
}

// part is one controller: it blocks until ctx ends.
type part struct {
	name string
	run  func(ctx context.Context) error
}

// newControllers makes the controllers over the server's informers. The order is that of dependence: each asks only earlier ones.
func newControllers(ids *identities, kubeInformers informers.SharedInformerFactory, registry *clusters.Registry, c CompletedOptions,
) (*controllers, error) {
	kube, err := kubernetes.NewForConfig(ids.controller())
	if err != nil {
		return nil, err
	}
	manifold, err := versioned.NewForConfig(asJSON(ids.controller()))
	if err != nil {
		return nil, err
	}
	m := &controllers{
		identities: ids, kube: kube, manifold: manifold,
		informers: kubeInformers,
		own:       externalversions.NewSharedInformerFactory(manifold, 0),
		registry:  registry,
		silence:   c.silence, advertised: c.advertised,
		events: record.NewBroadcaster(),
		grace:  c.silence.GracePeriod,
	}
	m.joined = m.own.Manifold().V1alpha1().Clusters().Lister()
	recorder := m.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "manifold"})

	if m.engine, err = engine.New(engine.Options{
		Kube: m.informers, Manifold: m.own, Requested: m.registry.Requested, Levels: m.registry.Levels,
		Toleration: c.silence.Toleration, Unschedulable: c.silence.Unschedulable,
	}); err != nil {
		return nil, err
	}
	if m.upstream, err = syncer.NewUpstream(m.informers); err != nil {
		return nil, err
	}
	m.upstream.Overrides, m.upstream.PodKey = m.engine.Overrides, c.podKey
	fleets := m.upstream.Fleets
	fleets.Leaving, fleets.Silent, fleets.Lost, fleets.Moves = m.leaving, m.silent, m.engine.Lost, m.engine.Moves
	if m.upstream.API, err = c.advertised.api(c.pki); err != nil {
		return nil, err
	}
	if err := m.upstream.WatchPolicies(m.informers, m.own); err != nil {
		return nil, err
	}
	metadata, err := newMetadataInformers(ids.loopback)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(asJSON(ids.controller()))
	if err != nil {
		return nil, err
	}
	decider, err := kubernetes.NewForConfig(ids.placement())
	if err != nil {
		return nil, err
	}
	policies, err := versioned.NewForConfig(asJSON(ids.placement()))
	if err != nil {
		return nil, err
	}
	placement, err := controller.New(controller.Options{
		Engine: m.engine, Kube: m.informers, Manifold: m.own, Client: decider, Recorder: recorder, Policies: policies,
		FailoverRate: c.silence.FailoverRate,
	})
	if err != nil {
		return nil, err
	}
	m.custom, err = custom.New(custom.Options{
		Engine: m.engine, Upstream: m.upstream, Kube: m.informers, Manifold: m.own, Metadata: metadata, Client: dynamicClient,
		Recorder: recorder, Follow: placement.Follow, Leaving: m.leaving,
	})
	if err != nil {
		return nil, err
	}
	summariser, err := kubernetes.NewForConfig(ids.summary())
	if err != nil {
		return nil, err
	}
	summaries, err := summarycontroller.New(summarycontroller.Options{
		Upstream: m.upstream, Engine: m.engine, Kube: m.informers, Manifold: m.own, Client: summariser, Recorder: recorder,
	})
	if err != nil {
		return nil, err
	}
	handMade, err := volumes.New(volumes.Options{Upstream: m.upstream, Kube: m.informers, Manifold: m.own, Client: kube, Recorder: recorder})
	if err != nil {
		return nil, err
	}
	trials, err := newTrials(ids)
	if err != nil {
		return nil, err
	}
	manager, err := clusters.New(clusters.Options{
		Client: kube, Manifold: manifold,
		Clusters: m.own.Manifold().V1alpha1().Clusters(), Nodes: m.informers.Core().V1().Nodes(),
		Registry: m.registry,
		Runner: runners{&syncer.Runner{Options: syncer.Options{
			Upstream: m.upstream, Client: m.syncerClient, Recorder: recorder, Changed: summaries.Changed, Mirror: summaries.Mirror,
			Leaving: m.leaving, Uses: m.custom.Loops().Uses, Overrides: m.engine.Overrides,
			Admits: trials.admits, Allows: m.allows,
			VolumeChanged: handMade.Changed, ClaimWanted: handMade.ClaimWanted,
		}}, m.custom.Loops()},
		GracePeriod: c.silence.GracePeriod, Fence: m.upstream.Fence, Requester: requester,
		MaxObjects: c.bounds.Objects, MaxBytes: c.bounds.Bytes.Value(),
	})
	if err != nil {
		return nil, err
	}
	removals, err := removal.New(removal.Options{
		Upstream: m.upstream, Custom: m.custom.Loops(), Kube: m.informers, Manifold: m.own, Client: kube, Clusters: manifold,
	})
	if err != nil {
		return nil, err
	}
	drains, err := drain.New(drain.Options{
		Upstream: m.upstream, Engine: m.engine, Custom: m.custom.Loops().Placed, Manifold: m.own, Clusters: manifold,
	})
	if err != nil {
		return nil, err
	}
	usage, err := newQuotaUsage(kube, m.informers)
	if err != nil {
		return nil, err
	}
	m.parts = []part{
		{"placement", placement.Run},
		{"summary", summaries.Run},
		{"volumes made by hand", handMade.Run},
		{"custom resources", m.custom.Run},
		{"clusters", manager.Run},
		{"removal of clusters", removals.Run},
		{"drains of clusters", drains.Run},
		{"usage of quotas", usage.Run},
		{"stock controllers", func(ctx context.Context) error {
			return runStockControllers(ctx, ids.loopback, m.informers, metadata, c.pki)
		}},
	}
	return m, nil
}

// run makes what a logical cluster starts with, learns the logical cluster's identity, and runs all parts until ctx ends or one fails.
func (m *controllers) run(ctx context.Context, ready func()) error {
	if err := bootstrap(ctx, m.kube, m.manifold, m.silence, m.advertised); err != nil {
		return fmt.Errorf("prepare the logical cluster: %w", err)
	}
	apis, err := apiregistration.NewForConfig(m.identities.controller())
	if err != nil {
		return err
	}
	if err := registerMetrics(ctx, apis.APIServices(), m.servesMetrics); err != nil {
		return fmt.Errorf("prepare the logical cluster: %w", err)
	}
	system, err := m.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("learn the identity of the logical cluster: %w", err)
	}
	m.upstream.LogicalCluster = string(system.UID)

	// The informers of our kinds are not started yet, so nothing has been decided.
	if err := clusters.Resume(ctx, m.kube, m.manifold, m.grace, time.Now()); err != nil {
		return fmt.Errorf("take up what was known of the clusters: %w", err)
	}

	m.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: m.kube.CoreV1().Events("")})
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
	return kubernetes.NewForConfig(m.identities.syncer(cluster))
}

// leaving tells syncers whether their cluster is being removed.
func (m *controllers) leaving(cluster string) (bool, string) {
	c, err := m.joined.Get(cluster)
	if apierrors.IsNotFound(err) {
		return true, v1alpha1.RemoveForce // its syncer is about to end
	}
	if err != nil || c.DeletionTimestamp == nil {
		return false, ""
	}
	return true, c.Annotations[v1alpha1.AnnotationRemove]
}

// silent tells syncers whether a cluster can be told nothing at the moment.
func (m *controllers) silent(cluster string) bool {
	c, err := m.joined.Get(cluster)
	return err != nil || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ClusterReady)
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
type runners []clusters.Runner

// Run implements clusters.Runner.
func (r runners) Run(ctx context.Context, c *clusters.Connection) error {
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
