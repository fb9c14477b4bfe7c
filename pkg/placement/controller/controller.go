// Package controller makes the placement decisions that admission could not make: for workloads that came before any cluster, and when
// clusters, policies or namespaces change. It tells users why a workload is not placed.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"golang.org/x/time/rate"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

// workers is how many workloads are decided about at a time. A decision takes microseconds; they wait for its write, beside all that follows
// from those before it. When a large cluster is lost, those that follow should not keep the others waiting, so these are many.
const workers = 192

const (
	// Retries of one workload grow from the first to the last delay. There is no bound on those of all together: when thousands are placed
	// anew at once, many have a new status in between.
	firstRetry = 10 * time.Millisecond
	lastRetry  = 10 * time.Second
	// defaultFailoverRate places all of a large cluster anew within seconds, and does not do so in one.
	defaultFailoverRate = 1000
	// startTime is how long after its making a Job may have started without anybody above knowing.
	startTime = 3 * time.Second
)

// ReasonPreempted is the reason of the event about a workload whose pods are stopped for one of higher priority, as they cannot go elsewhere.
const ReasonPreempted = "Preempted"

// Options say what a Controller works with.
type Options struct {
	Engine   *engine.Engine
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Client writes decisions, as Manifold itself.
	Client   kubernetes.Interface
	Recorder record.EventRecorder
	// Policies writes the statuses of policies. Without it they have none.
	Policies versioned.Interface
	// FailoverRate is how many workloads a second are placed anew because their cluster is silent or cannot schedule them. Zero is 1000.
	FailoverRate float64
	// Queues are the names of the queues.
	Queues work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps the decisions of all workloads current.
type Controller struct {
	Options
	stores map[schema.GroupVersionResource]cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[item]
	synced []cache.InformerSynced
	// unused decides about volume claims.
	unused *claims
	// followers is nil if nobody writes the statuses of policies.
	followers *followers
	// failovers paces what is placed anew because a cluster is silent or cannot schedule it.
	failovers *rate.Limiter

	// told has what was told of the decision about each workload, and to others because of it.
	told records.Told

	mu sync.Mutex
	// waiting are the workloads that wait for a cluster.
	waiting map[item]bool
	// lonely are those of them that wait because of where other workloads run.
	lonely map[item]bool
	// repinned are the workloads whose namespace was given another pin since they were decided about.
	repinned map[item]bool
	// turns says when those may be placed anew that failovers has let wait.
	turns map[item]time.Time
	// decided are the versions of workloads that decisions were written on and that the watch shows for another moment.
	decided map[item]version
}

// item names a workload.
type item struct {
	resource schema.GroupVersionResource
	cache.ObjectName
}

func itemOf(kind projection.Kind, obj projection.Object) item {
	return item{kind.Resource, cache.MetaObjectToName(obj)}
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	perSecond := cmp.Or(o.FailoverRate, defaultFailoverRate)
	c := &Controller{
		Options:   o,
		failovers: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/2))),
		stores:    map[schema.GroupVersionResource]cache.Indexer{},
		queue:     work.NewQueue[item](o.Queues.Of("placement"), firstRetry, lastRetry),
		waiting:   map[item]bool{},
		lonely:    map[item]bool{},
		repinned:  map[item]bool{},
		turns:     map[item]time.Time{},
		decided:   map[item]version{},
	}
	o.Engine.Wake(c.look)
	manifold := o.Manifold.Manifold().V1alpha1()
	if o.Policies != nil {
		c.followers = newFollowers(o.Policies, manifold.ClusterPlacementPolicies().Lister(), manifold.PlacementPolicies().Lister(), o.Queues)
		c.followers.busy = func() bool { return c.queue.Len() > 0 }
	}
	c.unused = newClaims(c, o.Kube.Core().V1(), manifold.Clusters().Lister())
	type watch struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}
	var watches []watch
	for _, kind := range projection.Workloads() {
		generic, err := o.Kube.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		c.stores[kind.Resource] = generic.Informer().GetIndexer()
		watches = append(watches, watch{generic.Informer(), c.workloadHandler(kind)})
	}
	if c.followers != nil {
		watches = append(watches, watch{manifold.PlacementPolicies().Informer(), c.followers.handler()},
			watch{manifold.ClusterPlacementPolicies().Informer(), c.followers.handler()})
	}
	for _, w := range append(watches, []watch{
		{o.Kube.Core().V1().Namespaces().Informer(), c.namespaceHandler()},
		{o.Kube.Core().V1().Pods().Informer(), c.mirrorHandler()},
		{o.Kube.Scheduling().V1().PriorityClasses().Informer(), c.classHandler()},
		{o.Kube.Core().V1().PersistentVolumeClaims().Informer(), c.unused.handler()},
		{o.Kube.Core().V1().PersistentVolumes().Informer(), c.unused.volumeHandler()},
		{manifold.Clusters().Informer(), c.clusterHandler()},
		{manifold.PlacementPolicies().Informer(), engine.OnPolicies(c.enqueueConcerned)},
		{manifold.ClusterPlacementPolicies().Informer(), engine.OnPolicies(func(...*v1alpha1.ClusterPlacementPolicy) { c.enqueueAll() })},
	}...) {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return nil, fmt.Errorf("watch what placement depends on: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// Run decides until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, c.Engine.HasSynced)...) {
		return ctx.Err()
	}
	c.bookAgain()
	var group errgroup.Group
	group.Go(func() error { work.Run(ctx, c.queue, workers, c.sync); return nil })
	group.Go(func() error { work.Run(ctx, c.unused.queue, claimWorkers, c.unused.sync); return nil })
	if c.followers != nil {
		group.Go(func() error { work.Run(ctx, c.followers.queue, 1, c.followers.write); return nil })
	}
	return group.Wait()
}

// sync decides about one workload and stores the decision if it is another one.
func (c *Controller) sync(ctx context.Context, name item) error {
	s, err := c.read(name)
	if err != nil || s == nil {
		return err
	}
	decided, now, err := c.decide(s)
	if err != nil || !now {
		return err
	}
	return c.store(ctx, s, decided)
}

// subject is a workload with its last decision.
type subject struct {
	name     item
	object   projection.Object
	workload placement.Workload
	current  placement.Decision
}

// read returns a workload with its last decision; nil if there is nothing to decide about.
func (c *Controller) read(name item) (*subject, error) {
	obj, exists, err := c.stores[name.resource].GetByKey(name.String())
	if err != nil {
		return nil, err
	}
	if !exists {
		c.wait(name, false, false)
		c.followers.leave(name)
		c.look(c.Engine.Release(refOf(name)))
		return nil, nil
	}
	d := obj.(projection.Object)
	if c.outdated(name, d) {
		return nil, nil
	}
	kind, _ := projection.ForResource(name.resource)
	if d.GetDeletionTimestamp() != nil || kind.Mirror(d) || kind.Demand(d).Finished {
		c.forget(name, d)
		return nil, nil
	}
	w, err := kind.WorkloadOf(d)
	if err != nil {
		c.tell(d, corev1.EventTypeWarning, placement.ReasonUnplaced, err.Error(), "")
		return nil, nil
	}
	w.Repinned = w.Pin == nil && c.isRepinned(name)
	return &subject{name, d, w, identity.WholeDecisionOf(d)}, nil // one that cannot be read is decided anew
}

// decide returns a decision, unless it is to be made later.
func (c *Controller) decide(s *subject) (decided engine.Decided, now bool, err error) {
	decided, ready := c.Engine.Decide(s.workload, s.current)
	if !ready {
		return decided, false, errors.New("the clusters are not known yet")
	}
	c.lookAt(s.name, decided.Next)
	if wait := c.settles(s.object, s.workload); wait > 0 && len(s.current) > 0 && !decided.Decision.Equal(s.current) {
		c.queue.AddAfter(s.name, wait)
		return decided, false, nil
	}
	forced := (len(decided.Leaving.Lost) > 0 || decided.Moved > 0) && !decided.Decision.Equal(s.current)
	if delay := c.turn(s.name, forced); delay > 0 {
		c.queue.AddAfter(s.name, delay)
		return decided, false, nil
	}
	if decided.Takes(s.current) {
		decided, _ = c.Engine.Claim(s.workload, s.current)
		c.lookAt(s.name, decided.Next)
	}
	return decided, true, nil
}

// store stores a decision if it is another one, and says what there is to say of it.
func (c *Controller) store(ctx context.Context, s *subject, decided engine.Decided) error {
	result := decided.Result
	c.look(c.Engine.Book(s.workload, decided))
	c.followers.follow(s.name, result)
	waits := len(result.Decision) == 0 || result.Unplaced > 0 || result.Displaced || result.Stuck > 0 || len(result.Tied) > 0
	c.wait(s.name, waits, waits && result.KeptOff())
	if !result.Decision.Equal(s.current) || !result.Failures.Equal(s.workload.Failures) {
		if err := c.write(ctx, s.name, s.object, identity.DecisionOf(s.object), result); err != nil {
			return err
		}
		c.Engine.Placed(s.workload, result.Decision)
	}
	c.look(c.Engine.Waiting(s.workload))
	c.repin(s.name, false)
	c.explain(s.object, s.current, result)
	c.tellStopped(s.object, decided.Stops)
	if pod, ok := s.object.(*corev1.Pod); ok && len(result.Decision) == 0 {
		return c.unschedulable(ctx, pod, result.Message())
	}
	return nil
}

// lookAt has a workload decided about anew at a time, unless that is zero.
func (c *Controller) lookAt(name item, at time.Time) {
	if !at.IsZero() {
		c.queue.AddAfter(name, at.Sub(c.Clock.Now()))
	}
}

// settles is how long it is not known yet whether something has started that would then stay where it is: what runs is told by a status,
// which takes a moment to come up from the cluster.
func (c *Controller) settles(d projection.Object, w placement.Workload) time.Duration {
	if !w.Restarts || w.Fixed {
		return 0
	}
	return d.GetCreationTimestamp().Add(startTime).Sub(c.Clock.Now())
}

// explain writes an event when there is something to tell that has not been told.
func (c *Controller) explain(d projection.Object, before placement.Decision, result placement.Result) {
	switch event := result.Event(before); event.Reason {
	case "":
	case placement.ReasonUnplaced:
		c.tell(d, event.Type, unplacedReason(d), event.Message, "")
	default:
		c.tell(d, event.Type, event.Reason, event.Message, result.Departure(before))
	}
}

// tell writes an event unless its message was told last. What was but a moment ago comes after that: it is not true any more the next time,
// and no reason to tell the rest again.
func (c *Controller) tell(d projection.Object, eventType, reason, message, moment string) {
	if c.told.News(d.GetUID(), "decision", message) {
		c.Recorder.Event(d, eventType, reason, message+moment)
	}
}

// wait notes whether a workload waits for something, and if so, whether it may be for other workloads to come or go.
func (c *Controller) wait(name item, waits, lonely bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, name)
	delete(c.lonely, name)
	if waits {
		c.waiting[name] = true
	}
	if lonely {
		c.lonely[name] = true
	}
}

// turn returns how long a workload has to wait until it may be placed anew, if it is to be forced off a cluster. Each one waits once, for as
// long as those before it take: deciding about all of them again and again would take longer than that.
func (c *Controller) turn(name item, forced bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !forced {
		delete(c.turns, name)
		return 0
	}
	now := c.Clock.Now()
	at, waits := c.turns[name]
	if !waits {
		at = now.Add(c.failovers.ReserveN(now, 1).DelayFrom(now))
		c.turns[name] = at
	}
	if delay := at.Sub(now); delay > 0 {
		return delay
	}
	delete(c.turns, name)
	return 0
}

func (c *Controller) isRepinned(name item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repinned[name]
}

func (c *Controller) repin(name item, repinned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if repinned {
		c.repinned[name] = true
	} else {
		delete(c.repinned, name)
	}
}

func (c *Controller) forget(name item, d projection.Object) {
	c.followers.leave(name)
	c.wait(name, false, false)
	c.look(c.Engine.Release(refOf(name)))
	c.told.Forget(d.GetUID())
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.repinned, name)
	delete(c.turns, name)
	delete(c.decided, name)
}
