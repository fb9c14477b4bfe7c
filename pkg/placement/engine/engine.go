package engine

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/engine/policies"
	"github.com/manifold-dev/manifold/pkg/placement/remedy"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/stuck"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Options say where an Engine reads.
type Options struct {
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Requested returns what the pods of a cluster request at this moment, if it is known; see clusters.Registry. A map that it has returned
	// never changes; while nothing changes, it should be the same one.
	Requested func(cluster string) (corev1.ResourceList, bool)
	// Levels returns what the pods of a cluster request by priority, the lowest first; see clusters.Registry. Without it nothing is
	// preempted.
	Levels func(cluster string) []placement.Level
	// Toleration is for how long workloads stay on a silent cluster whose policy says nothing of that. Zero is five minutes.
	Toleration time.Duration
	// Unschedulable is for how long pods may be unschedulable whose policy says nothing of that. Zero is two minutes.
	Unschedulable time.Duration
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Engine decides where workloads run. It is safe for concurrent use and never blocks.
type Engine struct {
	clusters        listers.ClusterLister
	policies        listers.PlacementPolicyLister
	clusterPolicies listers.ClusterPlacementPolicyLister
	namespaces      corelisters.NamespaceLister
	claims          corelisters.PersistentVolumeClaimLister
	storage         storagelisters.StorageClassLister
	volumes         corelisters.PersistentVolumeLister
	synced          []cache.InformerSynced
	ledger          *ledger
	view            *view
	loose           loose
	affine          affine
	reading         policies.Reading
	turn            sync.Mutex // see Claim
	mirrors         mirrors
	priorities      priorities
	bookings        *bookings
	stores          map[string]kept // by kind
	wake            func([]Ref)     // may be nil
	levels          func(cluster string) []placement.Level
	toleration      time.Duration
	unschedulable   time.Duration
	clock           clock.PassiveClock
}

// kept is a kind of workloads with all of them.
type kept struct {
	kind  projection.Kind
	store cache.Indexer
}

// defaultToleration is that of pods on a node that is not reached, in Kubernetes.
const defaultToleration = 5 * time.Minute

// defaultUnschedulable leaves a scheduler, and whoever adds nodes at its request, some time.
const defaultUnschedulable = 2 * time.Minute

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Engine, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	manifold, namespaces := o.Manifold.Manifold().V1alpha1(), o.Kube.Core().V1().Namespaces()
	e := &Engine{
		clusters:        manifold.Clusters().Lister(),
		policies:        manifold.PlacementPolicies().Lister(),
		clusterPolicies: manifold.ClusterPlacementPolicies().Lister(),
		namespaces:      namespaces.Lister(),
		claims:          o.Kube.Core().V1().PersistentVolumeClaims().Lister(),
		storage:         o.Kube.Storage().V1().StorageClasses().Lister(),
		volumes:         o.Kube.Core().V1().PersistentVolumes().Lister(),
		ledger:          newLedger(o.Clock),
		priorities:      priorities{o.Kube.Scheduling().V1().PriorityClasses().Lister()},
		bookings:        newBookings(o.Clock),
		stores:          map[string]kept{},
		levels:          o.Levels,
		toleration:      cmp.Or(o.Toleration, defaultToleration),
		unschedulable:   cmp.Or(o.Unschedulable, defaultUnschedulable),
		clock:           o.Clock,
	}
	var err error
	if e.reading, err = policies.New(manifold); err != nil {
		return nil, err
	}
	e.view = newView(o.Requested, e.ledger)
	e.synced = []cache.InformerSynced{
		manifold.Clusters().Informer().HasSynced,
		manifold.PlacementPolicies().Informer().HasSynced,
		manifold.ClusterPlacementPolicies().Informer().HasSynced,
		namespaces.Informer().HasSynced,
		o.Kube.Core().V1().PersistentVolumeClaims().Informer().HasSynced,
		o.Kube.Core().V1().PersistentVolumes().Informer().HasSynced,
		o.Kube.Storage().V1().StorageClasses().Informer().HasSynced,
		o.Kube.Scheduling().V1().PriorityClasses().Informer().HasSynced,
	}
	registrations, err := e.affine.watch(manifold)
	if err != nil {
		return nil, fmt.Errorf("watch policies: %w", err)
	}
	e.synced = append(e.synced, registrations...)
	if e.loose, err = newLoose(o.Kube); err != nil {
		return nil, err
	}
	if e.mirrors, err = newMirrors(o.Kube); err != nil {
		return nil, err
	}
	for _, kind := range projection.Workloads() {
		generic, err := o.Kube.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		registration, err := generic.Informer().AddEventHandler(e.ledger.handler(kind, e.changed))
		if err != nil {
			return nil, fmt.Errorf("watch what is placed: %w", err)
		}
		e.synced = append(e.synced, registration.HasSynced)
		e.stores[kind.GVK.Kind] = kept{kind, generic.Informer().GetIndexer()}
	}
	return e, nil
}

// HasSynced reports whether the engine knows all that it decides by.
func (e *Engine) HasSynced() bool {
	for _, synced := range e.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Decided is a decision and what it has to do with clusters that are to be left.
type Decided struct {
	placement.Result
	// Leaving tells which clusters the workload leaves on account of their taints, and when the next one will be due.
	Leaving rules.Leaving
	// Next is when to decide again if nothing changes until then; zero if there is no such time.
	Next time.Time
	// Stops is what others are to be told whose replicas the workload stops.
	Stops []Stop

	booking  *booking
	snapshot placement.Snapshot
	request  placement.Request
}

// Takes reports whether more of any cluster is taken than by the last decision.
func (d *Decided) Takes(last placement.Decision) bool {
	for cluster, share := range d.Decision {
		if had, has := last[cluster]; !has || share.Replicas > had.Replicas {
			return true
		}
	}
	return false
}

// Pin is the pin that counted, the workload's own or its namespace's; nil if there is none.
func (d *Decided) Pin() *v1alpha1.Pin { return d.request.Workload.Pin }

// Remedies says by cluster what would have to change; see remedy.For.
func (d *Decided) Remedies() map[string][]string {
	return remedy.For(d.snapshot, &d.request, d.Result)
}

// Place decides about a workload that is then stored with the decision. What the workload's namespace says is filled in here. It returns
// false when the clusters are not known yet.
func (e *Engine) Place(w placement.Workload, current placement.Decision) (placement.Result, bool) {
	if len(current) > 0 {
		if decided, known := e.Decide(w, current); !known || !decided.Takes(current) {
			return decided.Result, known
		}
	}
	decided, known := e.Claim(w, current)
	return decided.Result, known
}

// Claim is Decide for who goes on to store the decision. One takes room after the other, and each knows what the one before it has taken: two
// at once would take the same, and so would all that wait for room when there is some. Of workloads that are to be apart, two would choose
// the same cluster, and none would ever leave it again; of those that are to be near each other, each another one. What takes no more of any
// cluster, as most of what is decided about again, need not wait for others; see Decided.Takes.
func (e *Engine) Claim(w placement.Workload, current placement.Decision) (Decided, bool) {
	e.turn.Lock()
	defer e.turn.Unlock()
	decided, known := e.Decide(w, current)
	if known && len(decided.Decision) > 0 && !decided.Decision.Equal(current) {
		e.ledger.expect(w, decided.Decision)
	}
	return decided, known
}

// Decide is Place, and tells what there is to do later.
func (e *Engine) Decide(w placement.Workload, current placement.Decision) (Decided, bool) {
	if !e.HasSynced() {
		return Decided{}, false
	}
	all, _ := e.clusters.List(labels.Everything()) // listing from a cache cannot fail
	joined, evict := present(all)
	now := situation{e.view.of(joined), joined, evict}
	request, leaving, due, err := e.ask(w, current, now)
	if err != nil {
		// Nobody knows where the workload should run. What runs stays: a mistake in a policy must not take anything away.
		problem := words.Note{Code: words.NoteProblem, Subject: err.Error()}
		return Decided{Result: placement.Result{Decision: request.Current, Failures: w.Failures, Notes: []words.Note{problem}}}, true
	}
	request.Displaced = e.bookings.on(refOf(w))
	snapshot := e.bookings.less(now.snapshot, refOf(w), func() int32 { priority, _ := e.priorities.of(w.Template); return priority })
	out := e.place(snapshot, request, now)
	out.Leaving = leaving
	out.Next = placement.Earliest(out.Next, leaving.Next, due, out.Failures.Next(request.Tolerated, request.Now))
	return out, true
}

// ask completes a question: with all that the decision depends on beside the clusters. It also tells which clusters the workload leaves, and
// when another of its pods will have been unschedulable for too long. The error is that nobody can say which policy the workload is under.
func (e *Engine) ask(w placement.Workload, current placement.Decision, now situation) (
	request placement.Request, leaving rules.Leaving, due time.Time, err error,
) {
	e.complete(&w)
	e.addVolumes(&w, current)
	e.addHandMade(&w, now.joined)
	w.Brings = e.priorities.brought(w.Template)
	if len(current) == 0 {
		current = decide.Found(w, e.loose.metBy(w))
	}
	if w.RunsIn != "" {
		current = placement.Decision{w.RunsIn: {Replicas: 1}}.Holding(current)
	}
	request = placement.Request{Workload: w, Current: current}
	policy, err := e.policy(w)
	if err != nil {
		return request, leaving, due, err
	}
	request.Policy, request.Others = policy, e.others(w, policy)
	if request.KeepsTogether() {
		if request.Neighbours = e.ledger.neighbours(w); len(request.Neighbours) == 0 {
			request.Neighbours = e.claimsIn(w)
		}
	}
	request.Workload.Refused = rules.WithoutClass(now.snapshot, &w, current)
	w.Refused = request.Workload.Refused
	request.Now, request.Tolerated = e.clock.Now(), policy.ToleratesUnschedulable(e.unschedulable)
	request.Stuck, due = stuck.Find(&w, current, e.mirrors.of(w, current), request.Tolerated, request.Now)
	leaving = rules.Leave(now.snapshot, &request, e.toleration, request.Now)
	request.Lost, request.Forced = leaving.Lost, leaving.Forced
	request.Evict = union(now.evict, leaving.Now)
	return request, leaving, due, nil
}

// Lost reports whether a workload has given up a silent cluster, so that it may run elsewhere what it ran there.
func (e *Engine) Lost(w placement.Workload, cluster string) bool {
	if !e.HasSynced() {
		return false
	}
	e.complete(&w)
	policy, err := e.policy(w)
	if err != nil {
		return false
	}
	all, _ := e.clusters.List(labels.Everything())
	joined, _ := present(all)
	request := placement.Request{Workload: w, Policy: policy, Current: placement.Decision{cluster: {}}}
	return rules.Leave(e.view.of(joined), &request, e.toleration, e.clock.Now()).Lost[cluster]
}

// Selects reports whether any policy selects a workload.
func (e *Engine) Selects(w placement.Workload) (bool, error) {
	e.complete(&w)
	policy, err := e.policy(w)
	return policy != nil, err
}

// Placed takes a decision into account while it is on its way to storage.
func (e *Engine) Placed(w placement.Workload, decision placement.Decision) {
	e.ledger.expect(w, decision)
}

// complete adds what the namespace says: its labels, and its pin where the workload has none.
func (e *Engine) complete(w *placement.Workload) {
	namespace, err := e.namespaces.Get(w.Namespace)
	if err != nil {
		return // being made this moment; the controller looks again
	}
	w.NamespaceLabels = namespace.Labels
	if w.Pin != nil {
		return
	}
	if text, ok := namespace.Annotations[v1alpha1.AnnotationClusters]; ok {
		// A bad one is refused when it is written.
		if pin, err := v1alpha1.ParsePin(text); err == nil {
			w.Pin = &pin
		}
	}
}

// present returns the clusters that placement may consider, and those among them that workloads must leave because they are being
// removed. One whose content is given up is as good as gone.
func present(all []*v1alpha1.Cluster) (joined []*v1alpha1.Cluster, evict map[string]bool) {
	joined = make([]*v1alpha1.Cluster, 0, len(all))
	for _, c := range all {
		if c.DeletionTimestamp != nil {
			if c.Annotations[v1alpha1.AnnotationRemove] != "" {
				continue
			}
			if evict == nil {
				evict = map[string]bool{}
			}
			evict[c.Name] = true
		}
		joined = append(joined, c)
	}
	return joined, evict
}

// union returns the names in either set.
func union(a, b map[string]bool) map[string]bool {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}
