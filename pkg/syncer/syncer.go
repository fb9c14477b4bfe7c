package syncer

import (
	"context"
	"errors"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/adoption"
	"github.com/manifold-dev/manifold/pkg/syncer/arrivals"
	"github.com/manifold-dev/manifold/pkg/syncer/carried"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/endpoints"
	"github.com/manifold-dev/manifold/pkg/syncer/holding"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/reporting"
	"github.com/manifold-dev/manifold/pkg/syncer/route"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/strangers"
	"github.com/manifold-dev/manifold/pkg/syncer/terms"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
	"github.com/manifold-dev/manifold/pkg/syncer/watching"
)

// downWorkers is how many objects one cluster is sent at a time. A request takes some milliseconds, so this is several thousand objects a second,
// more than an API server takes.
const downWorkers = 16

// Options say what syncers work with.
type Options struct {
	Upstream *Upstream
	// Client returns how the syncer of a cluster writes to the logical cluster: under its own name.
	Client func(cluster string) (kubernetes.Interface, error)
	// Recorder writes the events that tell users what could not be projected.
	Recorder record.EventRecorder
	// Changed is told of objects whose report from a cluster may have changed, and whether the change is worth telling at once. It returns at once.
	Changed func(cluster string, key identity.Key, urgent bool)
	// Mirror is told of a Deployment that has a ReplicaSet in a cluster whose mirror may be missing. It returns at once.
	Mirror func(cluster string, deployment cache.ObjectName)
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Unheard reports whether a cluster is silent for longer than its grace period. It may be nil.
	Unheard func(cluster string) bool
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// Admits returns a RefusedError for a pod that the admission of the logical cluster refuses. It may be nil.
	Admits func(ctx context.Context, pod *corev1.Pod) error
	// CustomChanged is told that what a custom workload needs may have come to a cluster. It returns at once.
	CustomChanged func(cluster string, key identity.Key)
	// Uses reports whether anything that is of no projected kind is in a namespace of a cluster, or is to be. It may be nil.
	Uses func(cluster, namespace string) bool
	// Allows returns what the admin of a cluster lets come along there. It may be nil.
	Allows func(cluster string) v1alpha1.ClusterAllows
	// VolumeChanged is told of PersistentVolumes of the logical cluster of which a cluster may have something new to tell, and ClaimWanted of
	// claims that are to be somewhere. They return at once, and may be nil.
	VolumeChanged func(name string)
	ClaimWanted   func(claim cache.ObjectName)
}

// Runner starts a Syncer for every connection. It implements connection.Runner.
type Runner struct {
	Options
}

// Run keeps a cluster in step until ctx ends.
func (r *Runner) Run(ctx context.Context, c *connection.Connection) error {
	s, err := newSyncer(r.Options, c)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// Syncer keeps one cluster in step with the logical cluster.
type Syncer struct {
	Options
	cluster string
	client  kubernetes.Interface // of the cluster
	above   kubernetes.Interface // of the logical cluster, as this syncer
	usage   *capacity.Usage
	target  projection.Target
	below   *below
	queue   *steps.Queue[identity.Key]

	owners    *mirrors.Owners
	pods      *mirrors.Pods
	orphans   *mirrors.Orphans
	claims    *mirrors.Claims
	events    *mirrors.Events
	routed    *route.Cluster
	volumes   *carried.Volumes
	classes   *classes.Along
	lacking   *lacking.Pods
	reports   *reporting.Reporter
	holding   *holding.Holder
	planner   *planning.Planner
	addresses *addresses.Addresses
	handlers  *watching.Handlers
	strangers *strangers.Finder
	arrivals  arrivals.Arrivals
	pace      *endpoints.Pace
	telling   *telling
	adoption  *adoption.Controllers

	terms        terms.Terms
	states       *states.States[identity.Key]
	trust        *trust.Cluster
	reservations *reservations
	synced       atomic.Bool
}

func newSyncer(o Options, c *connection.Connection) (*Syncer, error) {
	above, err := o.Client(c.Name)
	if err != nil {
		return nil, err
	}
	b, err := newBelow(c.Client, o.Upstream.LogicalCluster, c.Budget)
	if err != nil {
		return nil, err
	}
	s := &Syncer{
		Options: o,
		cluster: c.Name,
		client:  c.Client,
		above:   above,
		usage:   c.Usage,
		target:  projection.Target{LogicalCluster: o.Upstream.LogicalCluster, Cluster: c.Name},
		below:   b,
		queue:   steps.NewQueue[identity.Key](o.Upstream.Queues.Of("down-"+c.Name), c.Answers),
		pace:    endpoints.NewPace(clock.RealClock{}),
	}
	s.terms = terms.Terms{
		Leaving: func() (bool, string) { return s.Leaving(s.cluster) },
		Allows: func() v1alpha1.ClusterAllows {
			if s.Allows == nil {
				return v1alpha1.ClusterAllows{}
			}
			return s.Allows(s.cluster)
		},
	}
	s.states = states.New(s.enqueue, func(key identity.Key) { s.pods.ForgetAwaited(key) })
	s.telling = &telling{cluster: s.cluster, recorder: s.Recorder, states: s.states, demand: s.Upstream.Demand}
	s.trust = &trust.Cluster{
		Name: c.Name, LogicalCluster: o.Upstream.LogicalCluster, Below: b.Cluster, States: s.states, Wanted: o.Upstream.Demand.Wanted,
	}
	s.volumes = carried.New(carried.Options{
		Cluster: s.trust, Above: o.Upstream.Demand, Client: c.Client, Watcher: b.watcher, Terms: s.terms, Queue: s.queue, Recorder: o.Recorder,
		Changed: o.VolumeChanged, Wanted: o.ClaimWanted,
	})
	s.classes = classes.New(classes.Options{
		Cluster: s.trust, Above: o.Upstream.classes, Here: b.classes, Offered: c.Classes, Synced: s.HasSynced,
		Names:  func(priority string) bool { return o.Upstream.Demand.NamesPriority(priority, c.Name) },
		ByHand: s.volumes.Serve,
		Client: c.Client, Terms: s.terms, Queue: s.queue, Recorder: o.Recorder,
	})
	s.lacking = lacking.New(lacking.Options{
		Cluster: s.trust, Above: o.Upstream.Cluster, Client: c.Client, Queue: s.queue, Fail: s.fail,
		Overrides: o.Overrides, Admits: o.Admits, Awaited: o.Upstream.Demand.Awaited,
	})
	s.mirror()
	s.routed = &route.Cluster{
		Name: c.Name, Below: b.Cluster, States: s.states, Queue: s.queue, Pods: s.pods, Claims: s.claims, Volumes: s.volumes,
		Seen: s.arrivals.Seen,
	}
	s.reservations = &reservations{
		cluster: c.Name, fleets: o.Upstream.Fleets, writer: s.writer, wake: func(key identity.Key) { o.Upstream.router.Wake(key, s.routed) },
	}
	s.handlers = watching.New(watching.Options{
		Below: b.Cluster, Demand: o.Upstream.Demand, Queue: s.queue, Pods: s.pods, Claims: s.claims, Volumes: s.volumes,
		Reports: s.reports, Secrets: b.secrets, Usage: c.Usage, Changed: s.told, Tell: s.changed, Seen: s.arrivals.Seen,
		Mirror:   func(deployment cache.ObjectName) { o.Mirror(c.Name, deployment) },
		Wake:     func(key identity.Key) { o.Upstream.router.Wake(key, nil) },
		Released: func(kind projection.Kind, gone projection.Object) { o.Upstream.router.Released(s.routed, kind, gone) },
	})
	b.secrets.Wanted = func(namespace string) bool { return o.Upstream.Demand.AnyIn(identity.Secrets, namespace, c.Name) }
	return s, s.watch()
}

// mirror makes what shows above what is in the cluster.
func (s *Syncer) mirror() {
	o := mirrors.Options{
		Cluster: s.cluster, Above: s.Upstream.Cluster, Below: s.below.Cluster, Guard: s.Upstream.Guard(nil),
		Client: s.client, Writer: s.above, Recorder: s.Recorder,
		Counts: s.trust.Counts, GivenUp: s.terms.GivenUp, Lives: s.Upstream.lives, Enqueue: s.enqueue, Changed: s.told,
		Lost:    func(w identity.Workload) bool { return s.Upstream.Fleets.HasLost(w, s.cluster) },
		Unheard: func() bool { return s.Unheard != nil && s.Unheard(s.cluster) },
		Projected: func(key identity.Key, uid types.UID) (int64, bool) {
			st := s.states.Of(key)
			return st.Generation, st.Hash != "" && st.UID == uid
		},
	}
	s.owners, s.pods = &mirrors.Owners{Options: o}, mirrors.NewPods(o)
	s.orphans, s.claims = mirrors.NewOrphans(s.pods), mirrors.NewClaims(s.pods)
	s.strangers = &strangers.Finder{Client: s.client, Below: s.below.Cluster, LogicalCluster: s.target.LogicalCluster}
	s.adoption = &adoption.Controllers{
		Cluster: s.trust, Above: s.Upstream.Cluster, Owners: s.owners,
		Read: func(ctx context.Context, kind projection.Kind, namespace, name string) (projection.Object, error) {
			return s.writer(kind, namespace).Client.Get(ctx, name)
		},
	}
	s.planner = planning.New(planning.Options{
		Cluster: s.trust, Demand: s.Upstream.Demand, Fleets: s.Upstream.Fleets, Access: s.Upstream.Access, Owners: s.owners, Terms: s.terms,
		Overrides: s.Overrides, Uses: s.Uses, HoldsIn: s.below.holdsIn, PodHooks: s.Upstream.PodWebhooks, Clock: clock.RealClock{},
	})
	s.holding = holding.New(holding.Options{
		Cluster: s.trust, Above: s.Upstream.Cluster, Services: s.Upstream.Services, Inside: s.below.inside, Synced: s.HasSynced,
		LeftBehind: s.Upstream.Demand.LeftBehind,
	})
	s.below.inside.Woken(func(who services.Waiter) {
		if who.Cluster == "" {
			s.told(who.Key, true)
		} else {
			s.Upstream.router.WakeOne(who)
		}
	})
	s.addresses = addresses.New(addresses.Options{
		Cluster: s.trust, Demand: s.Upstream.Demand, Drain: s.Upstream.outside.Drain, Gateways: func() []addresses.Gateway { return s.Upstream.gatewaysIn(s.cluster) },
	})
	s.reports = reporting.New(reporting.Options{
		Cluster: s.trust, Above: s.Upstream.Cluster, Owners: s.owners, Pods: s.pods, Synced: s.HasSynced, Leaving: s.addresses.Leaving,
		Unserved: s.addresses.Unserved,
		Inward: func(kind projection.Kind, above, live projection.Object) bool {
			return kind.Resource == identity.Services && s.planner.Inward(kind, above, live)
		},
		Dependents: func(w identity.Workload) []identity.Key { return s.Upstream.Demand.DependentsIn(w, s.cluster) }, Goes: s.Upstream.Goes, Changed: s.changed,
		Unproxied: s.holding.Unproxied,
		Takes: func(kind projection.Kind, above projection.Object) bool {
			key := identity.KeyOf(kind, above)
			return s.planner.Takes(s.at(planning.Look{Key: key, Kind: kind, Above: above, Live: s.below.Get(key)}))
		},
	})
	s.events = mirrors.NewEvents(s.claims, s.reports.PodsRefused)
}

// run starts the watches, then the loops, and waits for all of them when ctx ends.
func (s *Syncer) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", s.cluster))
	ctx, cancel := context.WithCancel(ctx)
	defer s.below.stop()
	defer cancel()
	// From here on, what happens above is queued, though nothing works on it yet.
	s.Upstream.attach(s)
	defer s.Upstream.router.WakeAll(s.routed)
	defer s.Upstream.Fleets.ReleaseAll(s.cluster)
	defer s.Upstream.detach(s)
	if !cache.WaitForCacheSync(ctx.Done(), s.Upstream.HasSynced) {
		return ctx.Err()
	}
	if err := s.below.start(ctx); err != nil {
		return err
	}
	if err := s.below.learnAPIServer(ctx, s.client); err != nil {
		return err
	}
	s.usage.Synced()
	s.Upstream.Fleets.ReleaseAll(s.cluster)
	s.enqueueEverything()
	s.synced.Store(true)
	s.classes.Tell()
	s.Upstream.router.WakeAll(s.routed)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.queue.Run(ctx, downWorkers, s.look); return nil })
	group.Go(func() error { s.pods.Run(ctx); return nil })
	group.Go(func() error { s.claims.Run(ctx); return nil })
	group.Go(func() error { return s.events.Run(ctx) })
	group.Go(func() error { return s.volumes.Run(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// changed tells that there is something new to report of an object, also to the syncers that hold back a share of it until there is.
func (s *Syncer) changed(key identity.Key, urgent bool) {
	// A pod's status is mirrored as it is.
	if _, ok := summary.ForResource(key.Resource); ok {
		s.told(key, urgent)
	}
	s.Upstream.router.Wake(key, nil)
	if addresses.Has(key.Resource) {
		s.routed.LookAtAddressed(key.Namespace)
	}
}

// told tells that there is something new to report of an object.
func (s *Syncer) told(key identity.Key, urgent bool) {
	s.Changed(s.cluster, key, urgent)
}

// enqueueEverything looks at all that is wanted here and all that is here, which is what makes a restart safe: what was missed shows
// as a difference.
func (s *Syncer) enqueueEverything() {
	for _, kind := range projection.Kinds() {
		for _, obj := range s.Upstream.Stores[kind.Resource].List() {
			if above := obj.(projection.Object); s.Upstream.Demand.Wanted(kind, above, s.cluster) || s.Upstream.Demand.LeftBehind(identity.Workload{Kind: kind, Object: above}, s.cluster) {
				s.enqueue(identity.KeyOf(kind, above))
				s.handlers.ReportChanged(kind, above)
				if name := kind.PriorityClass(above); name != "" {
					s.enqueue(classes.PriorityKey(name))
				}
			}
		}
		for _, obj := range s.below.Stores[kind.Resource].List() {
			key := identity.KeyOf(kind, obj.(projection.Object))
			if reporting.Summarised(kind) {
				s.states.Expect(key)
			}
			s.enqueue(key)
		}
	}
	for _, class := range s.classes.Brought() {
		s.enqueue(classes.PriorityKey(class.Name))
	}
	s.pods.LookAtAll()
	for _, obj := range s.below.Claims.GetStore().List() {
		if claim := obj.(*corev1.PersistentVolumeClaim); s.below.Ours(claim.Namespace) {
			s.claims.Look(cache.MetaObjectToName(claim))
		}
	}
	for _, mirror := range s.Upstream.ClaimMirrorsOf(s.cluster) {
		s.claims.Look(cache.MetaObjectToName(mirror))
	}
}

func (s *Syncer) enqueue(key identity.Key) { s.queue.Add(key) }
