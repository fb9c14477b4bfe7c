package syncer

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
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
	// Changed is told of objects whose report may have changed, and whether the change is worth telling at once. It returns at once.
	Changed func(key identity.Key, urgent bool)
	// Mirror is told of a Deployment that has a ReplicaSet whose mirror may be missing. It returns at once.
	Mirror func(deployment cache.ObjectName)
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Overrides returns what the policy of a workload changes of it in a cluster. It may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	// Admits returns a RefusedError for a pod that the admission of the logical cluster refuses. It may be nil.
	Admits func(ctx context.Context, pod *corev1.Pod) error
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
	offered *connection.Classes
	target  projection.Target
	below   *below
	queue   *steps.Queue[identity.Key]

	owners  *mirrors.Owners
	pods    *mirrors.Pods
	orphans *mirrors.Orphans
	claims  *mirrors.Claims
	events  *mirrors.Events

	refusals refusals

	mu     sync.Mutex
	synced bool
	states map[identity.Key]state
	// problems counts the states that have one.
	problems int
	// unseen are the objects that were there at the start and have not been looked at since.
	unseen map[identity.Key]struct{}
	// waitedFor are the workloads that wait for an object, waitsFor is the same the other way round.
	waitedFor map[identity.Key]map[identity.Key]struct{}
	waitsFor  map[identity.Key][]identity.Key
}

// state is what the last step with an object came to.
type state struct {
	// uid and generation are those of the object above that was projected, hash is that of the projection that the cluster holds, also if
	// it is held to another share than was decided. A hash of "" tells that it holds none.
	uid        types.UID
	generation int64
	hash       string
	// problem says why the cluster does not hold the projection, in words for the user.
	problem string
	// note says what will not work although the cluster holds the projection, in words for the user.
	note string
	// most is the largest number of replicas that what the cluster was told explains, with those of a rollout, and told what it was told.
	// Before is what most was, as long as the cluster still reports more than that.
	told, most, before int32
	// first is the number of the first of numbered replicas that it was told to run.
	first int32
	wait
}

// holds reports whether the cluster holds a projection of an object, by what this process has seen to.
func (st state) holds(above projection.Object) bool { return st.hash != "" && st.uid == above.GetUID() }

// wait tells that a cluster does not have what was decided, or not as it will be, until there is a change elsewhere.
type wait struct {
	// held tells that it has another part than was decided: it keeps more until the rest is available elsewhere, or less until replicas
	// are gone from there.
	held bool
	// paced tells that it has its part and is not to update it yet.
	paced bool
	// reason is for the user. One that is brief is told to those who ask, without an event.
	reason string
	brief  bool
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
		Options:  o,
		cluster:  c.Name,
		client:   c.Client,
		above:    above,
		usage:    c.Usage,
		offered:  c.Classes,
		target:   projection.Target{LogicalCluster: o.Upstream.LogicalCluster, Cluster: c.Name},
		below:    b,
		queue:    steps.NewQueue[identity.Key]("down-"+c.Name, c.Answers),
		refusals: refusals{byUID: map[types.UID]refused{}},

		states: map[identity.Key]state{},
		unseen: map[identity.Key]struct{}{},

		waitedFor: map[identity.Key]map[identity.Key]struct{}{},
		waitsFor:  map[identity.Key][]identity.Key{},
	}
	s.mirror()
	b.secrets.wanted = func(namespace string) bool { return o.Upstream.hasSecrets(namespace, c.Name) }
	return s, s.watch()
}

// mirror makes what shows above what is in the cluster.
func (s *Syncer) mirror() {
	o := mirrors.Options{
		Cluster: s.cluster, Above: s.Upstream.Cluster, Below: s.below.Cluster, Guard: s.Upstream.Guard(nil),
		Client: s.client, Writer: s.above, Recorder: s.Recorder,
		Counts: s.counts, GivenUp: s.givenUp, Lives: s.Upstream.lives, Enqueue: s.enqueue, Changed: s.Changed,
		Lost: s.lost,
		Projected: func(key identity.Key, uid types.UID) (int64, bool) {
			st := s.stateOf(key)
			return st.generation, st.hash != "" && st.uid == uid
		},
	}
	s.owners, s.pods = &mirrors.Owners{Options: o}, mirrors.NewPods(o)
	s.orphans, s.claims = mirrors.NewOrphans(s.pods), mirrors.NewClaims(s.pods)
	s.events = mirrors.NewEvents(s.claims, s.refusalEvent)
}

// run starts the watches, then the loops, and waits for all of them when ctx ends.
func (s *Syncer) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", s.cluster))
	ctx, cancel := context.WithCancel(ctx)
	defer s.below.stop()
	defer cancel()
	// From here on, what happens above is queued, though nothing works on it yet.
	s.Upstream.attach(s)
	defer s.Upstream.wakeAll(s)
	defer s.Upstream.detach(s)
	if !cache.WaitForCacheSync(ctx.Done(), s.Upstream.HasSynced) {
		return ctx.Err()
	}
	if err := s.below.start(ctx); err != nil {
		return err
	}
	s.usage.Synced()
	s.Upstream.Fleets.ReleaseAll(s.cluster)
	s.enqueueEverything()
	s.mu.Lock()
	s.synced = true
	s.mu.Unlock()
	s.tellClasses()
	s.Upstream.wakeAll(s)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.queue.Run(ctx, downWorkers, s.look); return nil })
	group.Go(func() error { s.pods.Run(ctx); return nil })
	group.Go(func() error { s.claims.Run(ctx); return nil })
	group.Go(func() error { return s.events.Run(ctx) })
	group.Go(func() error { return s.followVolumes(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

func (s *Syncer) reportChanged(kind projection.Kind, live projection.Object) {
	if key := identity.KeyOf(kind, live); summarised(kind) {
		s.changed(key, settled(key, live))
	}
}

func settled(key identity.Key, live projection.Object) bool {
	kind, ok := summary.ForResource(key.Resource)
	return !ok || kind.Settled(live)
}

// changed tells that there is something new to report of an object, also to the syncers that hold back a share of it until there is.
func (s *Syncer) changed(key identity.Key, urgent bool) {
	// A pod's status is mirrored as it is.
	if _, ok := summary.ForResource(key.Resource); ok {
		s.Changed(key, urgent)
	}
	s.Upstream.wake(key, nil)
}

// summarised reports whether objects of the kind have a status that is made of those of all clusters.
func summarised(kind projection.Kind) bool {
	_, ok := summary.ForResource(kind.Resource)
	return ok
}

// enqueueEverything looks at all that is wanted here and all that is here, which is what makes a restart safe: what was missed shows
// as a difference.
func (s *Syncer) enqueueEverything() {
	for _, kind := range projection.Kinds() {
		for _, obj := range s.Upstream.Stores[kind.Resource].List() {
			if above := obj.(projection.Object); s.Upstream.wanted(kind, above, s.cluster) || s.leftBehind(identity.Workload{Kind: kind, Object: above}) {
				s.enqueue(identity.KeyOf(kind, above))
				s.reportChanged(kind, above)
				if name := priorityOf(kind, above); name != "" {
					s.enqueue(priorityKey(name))
				}
			}
		}
		for _, obj := range s.below.Stores[kind.Resource].List() {
			key := identity.KeyOf(kind, obj.(projection.Object))
			if summarised(kind) {
				s.expect(key)
			}
			s.enqueue(key)
		}
	}
	for _, class := range s.broughtPriorities() {
		s.enqueue(priorityKey(class.Name))
	}
	for _, obj := range s.below.Pods.GetStore().List() {
		if pod := obj.(*corev1.Pod); s.below.Ours(pod.Namespace) {
			s.pods.Look(cache.MetaObjectToName(pod))
		}
	}
	for _, mirror := range s.Upstream.MirrorsOf(s.cluster) {
		s.pods.Look(cache.MetaObjectToName(mirror))
	}
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

// holds reports whether the cluster has an object of ours under this name.
func (s *Syncer) holds(key identity.Key) bool { return s.below.Get(key) != nil }

func (s *Syncer) setState(key identity.Key, st state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[key].problem != "" {
		s.problems--
	}
	if st.problem != "" {
		s.problems++
	}
	for workload := range s.waitedFor[key] {
		s.enqueue(workload)
	}
	if st == (state{}) {
		delete(s.states, key)
		s.pods.ForgetAwaited(key)
		return
	}
	s.states[key] = st
}

func (s *Syncer) stateOf(key identity.Key) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[key]
}
