package custom

import (
	"context"
	"fmt"
	"time"

	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/custom/described"
	"github.com/manifold-dev/manifold/pkg/custom/gateways"
	"github.com/manifold-dev/manifold/pkg/custom/shown"
	"github.com/manifold-dev/manifold/pkg/custom/stored"
	"github.com/manifold-dev/manifold/pkg/custom/watched"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

const (
	// workers is how many objects are decided about, or have their statuses written, at a time.
	workers = 4
	// settle is how long the status waits for what else its clusters have to tell.
	settle = 200 * time.Millisecond
	// Retries of one object grow from the first to the last delay.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Options say what a Controller works with.
type Options struct {
	Engine *engine.Engine
	// Syncers bring along what objects of custom kinds need in clusters.
	Syncers Syncers
	// LogicalCluster is the identity of the logical cluster, known once the syncers HasSynced.
	LogicalCluster func() string
	Kube           informers.SharedInformerFactory
	Manifold       externalversions.SharedInformerFactory
	// Metadata has the informers of the garbage collector. One is ours as long as the Run of its controller lasts, as it is the collector's.
	Metadata metadatainformer.SharedInformerFactory
	// Indexers index the metadata of all custom resources of the logical cluster, for Objects. It may be nil.
	Indexers cache.Indexers
	// Client reads and writes custom resources of the logical cluster, as Manifold itself.
	Client   dynamic.Interface
	Recorder record.EventRecorder
	// Follow learns what was decided about an object, nil if nothing is decided about it any more. It may be nil.
	Follow func(resource schema.GroupVersionResource, name cache.ObjectName, result *placement.Result)
	// Trouble learns what is wrong with the description of a custom kind by a ClusterPlacementPolicy, "" if nothing is. It may be nil.
	Trouble func(policy, problem string)
	// Holds returns what a cluster is to hold of an object of an application, see copies.Options. It may be nil.
	Holds func(kind schema.GroupKind, above metav1.Object, cluster string) (held.Hold, error)
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Queues are the names of the queues.
	Queues work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Syncers are those of built-in kinds, in all clusters.
type Syncers interface {
	// HasSynced reports whether they know the logical cluster.
	HasSynced() bool
	// EnsureNamespace sees to it that a namespace of ours exists in a cluster.
	EnsureNamespace(ctx context.Context, cluster, namespace string) error
	// FollowCustom has what the workloads of a custom kind need go along with them, until stop is called.
	FollowCustom(kind projection.Kind, informer cache.SharedIndexInformer) (stop func(), err error)
	// CustomIsKnown has what was kept for workloads of custom kinds looked at again, now that these are known.
	CustomIsKnown()
	// CustomLacks says what the cluster lacks of what a workload needs, and whether it is about to come.
	CustomLacks(ctx context.Context, cluster string, w identity.Workload, desired projection.Object) (problem string, waits bool, err error)
	// Behind tells of the workloads that Services lead to in a cluster.
	Behind(cluster string, services []cache.ObjectName) addresses.Behind
	// CustomKept returns the address from outside that keeps a workload in a cluster which it leaves, see copies.Options.
	CustomKept(cluster string, key identity.Key, leaves bool) (address *moves.Address, known bool)
	// AddressesChanged has clusters look again at what they keep for the sake of addresses.
	AddressesChanged()
}

// Controller keeps decisions and statuses of custom resources current, and the loops of the clusters.
type Controller struct {
	Options
	definitions crdinformers.CustomResourceDefinitionInformer
	// queue takes objects of some clusters after those of others in turn: however often a cluster changes what it says, others wait for no more of
	// its objects than there are of their own.
	queue     *work.Fair[copies.Key]
	synced    []cache.InformerSynced
	told      records.Told
	loops     *copies.Loops
	stored    stored.Objects
	described *described.Kinds
	watched   *watched.Kinds
	gateways  gateways.Addresses
	descriptions
	// followers are told of objects of the logical cluster.
	followers shown.Followers
	waiting   watched.Waiting
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	manifold := o.Manifold.Manifold().V1alpha1()
	c := &Controller{
		Options: o,
		stored:  stored.Objects{Client: o.Client},
		queue:   work.NewFairQueue[copies.Key](o.Queues.Of("custom"), firstRetry, lastRetry),
	}
	c.problems = described.Teller{Policies: manifold.ClusterPlacementPolicies().Lister(), Recorder: o.Recorder, Trouble: o.Trouble}
	c.described = described.New(described.Options{
		Client: o.Client, Indexers: logical.CustomIndexers, Changed: c.queue.Add, Synced: c.known,
		// The engine comes first: what is placed by it is known before anybody is told.
		Followers: []described.Follower{o.Engine.Follow, o.Syncers.FollowCustom},
	})
	c.loops = copies.New(copies.Options{
		Above: c, Clusters: manifold.Clusters().Lister(), LogicalCluster: o.LogicalCluster, Client: o.Client, Recorder: o.Recorder,
		Queues: o.Queues, EnsureNamespace: o.Syncers.EnsureNamespace, Lacks: o.Syncers.CustomLacks, Holds: o.Holds, Leaving: o.Leaving,
		Behind: o.Syncers.Behind, Kept: o.Syncers.CustomKept, Drain: c.drain, Clock: o.Clock,
	})
	c.gateways = gateways.Addresses{Gateways: c.loops.Gateways, Behind: o.Syncers.Behind}
	c.watched = watched.New(watched.Options{Metadata: o.Metadata, Indexers: o.Indexers, Loops: c.loops, Changed: c.changed, Again: c.queue.Add})
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{o.Kube.Core().V1().Namespaces().Informer(), engine.OnNamespaces(c.enqueue, func(name string, _ bool) { c.enqueue(name) })},
		{manifold.Clusters().Informer(), c.clusterHandler()},
		{manifold.PlacementPolicies().Informer(), engine.OnPolicies(func(versions ...*v1alpha1.PlacementPolicy) { c.enqueue(versions[0].Namespace) })},
		{manifold.ClusterPlacementPolicies().Informer(), engine.OnPolicies(func(...*v1alpha1.ClusterPlacementPolicy) {
			c.describe()
			c.enqueue(metav1.NamespaceAll)
		})},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return nil, fmt.Errorf("watch what custom resources depend on: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// Define tells where the definitions of custom resources are, before Run.
func (c *Controller) Define(definitions crdinformers.CustomResourceDefinitionInformer) {
	c.definitions = definitions
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, c.Engine.HasSynced, c.Syncers.HasSynced)...) {
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	c.begin(ctx, group)
	registration, err := c.definitions.Informer().AddEventHandler(c.watched.DefinitionHandler(ctx, group, c.describe, c.undefine))
	if err != nil {
		return fmt.Errorf("watch the definitions of custom resources: %w", err)
	}
	group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			c.defined.Store(true)
			c.describe() // also kinds that no definition makes
			c.known()
		}
		return nil
	})
	group.Go(func() error {
		work.Run(ctx, c.queue, workers, c.sync)
		return nil
	})
	<-ctx.Done()
	_ = c.definitions.Informer().RemoveEventHandler(registration) // it ends with the server in any case
	c.end()
	return group.Wait()
}

// Get implements copies.Above.
func (c *Controller) Get(key copies.Key) (k copies.Kind, o *metav1.PartialObjectMetadata, known bool) {
	return c.watched.Get(key)
}

// Concerns implements copies.Above.
func (c *Controller) Concerns(cluster string) []copies.Key { return c.watched.Concerns(cluster) }

// Changed implements copies.Above.
func (c *Controller) Changed(key copies.Key, urgent bool) {
	after := settle
	if urgent {
		after = 0 // whoever deletes it waits for that
	}
	_, o, _ := c.watched.Get(key)
	c.queue.AddFor(copies.Turn(o), key, after)
}

// LookAtGateways looks again at the Gateways of a cluster, since what runs behind them has changed.
func (c *Controller) LookAtGateways(cluster string) { c.loops.LookAtGateways(cluster) }

// Loops are what keeps clusters in step. It implements clusters.Runner.
func (c *Controller) Loops() *copies.Loops { return c.loops }

// Objects returns what shows the custom resources of the logical cluster. It is followed before Run.
func (c *Controller) Objects() shown.Objects {
	return shown.Objects{Kinds: c.watched, Loops: c.loops, Engine: c.Engine, Followers: &c.followers}
}
