// Package sights watches what others ask to see of clusters: objects of a kind, in a namespace, that carry a label or have a name. Watches are shared by
// all who ask for the same, and end when nobody does. There are so many to a cluster and no more, and what they keep is bounded too: a cluster may send
// anything.
package sights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
)

// What is watched of one cluster.
const (
	mostWatches = 512
	mostObjects = 5000
	mostBytes   = 16 << 20
)

// tryAgain is when a watch that was given up may be tried again: what was too much may be gone.
const tryAgain = time.Minute

// Wish is what somebody wants to see of a cluster.
type Wish struct {
	Resource schema.GroupVersionResource
	// Namespace is where the objects are, "" for objects in no namespace.
	Namespace string
	// Label is the key of a label that they carry, or Name that of the only one.
	Label, Name string
}

func (w Wish) String() string {
	if w.Name != "" {
		return fmt.Sprintf("%s %s/%s", w.Resource.GroupResource(), w.Namespace, w.Name)
	}
	return fmt.Sprintf("%s of namespace %s with label %s", w.Resource.GroupResource(), w.Namespace, w.Label)
}

// Seen is what a watch shows.
type Seen struct {
	Objects []*unstructured.Unstructured
	// Known says that these are all that there are. Otherwise Problem says why that is not known, "" while it is about to be.
	Known   bool
	Problem string
}

// Options say what Sights work with.
type Options struct {
	// For is who asks, as messages say it in the plural, and Grant the flag of "cluster join" that gives the right to watch what they ask for.
	For, Grant string
	// Trim returns what of an object is of interest.
	Trim func(*unstructured.Unstructured) *unstructured.Unstructured
	// Changed is told of an object that is new (before is nil), has changed, or is gone (after is nil), and of a watch that shows something else than
	// before as a whole (both are nil). It returns at once.
	Changed func(cluster string, wish Wish, before, after *unstructured.Unstructured)
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Sights are the watches. They are safe for concurrent use.
type Sights struct {
	Options

	mu sync.Mutex
	// wanted has, for each cluster and wish, who wants it.
	wanted map[string]map[Wish]map[string]bool
	// wishes are those of each owner, by cluster.
	wishes map[string]map[string][]Wish
	// live are the clusters that there is a connection to.
	live map[string]*cluster
}

// New returns sights of nothing.
func New(o Options) *Sights {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Sights{Options: o, wanted: map[string]map[Wish]map[string]bool{}, wishes: map[string]map[string][]Wish{}, live: map[string]*cluster{}}
}

// cluster is one that is watched. The lock of the Sights guards it.
type cluster struct {
	name    string
	ctx     context.Context
	client  dynamic.Interface
	group   *errgroup.Group
	budget  *bounds.Budget
	watches map[Wish]*watch
}

// watch is one that runs, or has ended since it could not go on.
type watch struct {
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc

	mu sync.Mutex
	// problem is why nothing is shown, "" if something is, and at where the watch was when that was found.
	problem, at string
	// over is since when the watch has been given up, zero if it runs. Its problem stays then.
	over time.Time
}

func (w *watch) says(problem string) (changed bool) {
	at := w.informer.LastSyncResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over.IsZero() {
		return false
	}
	changed = w.problem != problem
	w.problem, w.at = problem, at
	return changed
}

// ends ends a watch for a reason, once.
func (w *watch) ends(why string, now time.Time) bool {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over.IsZero() {
		return false
	}
	w.problem, w.over = why, now
	return true
}

// tired reports whether a watch has been given up so long ago that it is worth another try.
func (w *watch) tired(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.over.IsZero() && now.Sub(w.over) >= tryAgain
}

// trouble is the problem that there still is: a watch that has gone on since has none.
func (w *watch) trouble() string {
	at := w.informer.LastSyncResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if at != w.at && w.over.IsZero() {
		return ""
	}
	return w.problem
}

// Want has an owner want these wishes, by cluster, and no others.
func (s *Sights) Want(owner string, wishes map[string][]Wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.wishes[owner]
	for name, now := range wishes {
		for _, wish := range now {
			s.want(name, wish, owner)
		}
	}
	for name, before := range last {
		for _, wish := range before {
			if !slices.Contains(wishes[name], wish) {
				s.drop(name, wish, owner)
			}
		}
	}
	if len(wishes) == 0 {
		delete(s.wishes, owner)
		return
	}
	s.wishes[owner] = wishes
}

// want is Want for one wish, for callers that hold the lock.
func (s *Sights) want(name string, wish Wish, owner string) {
	if s.wanted[name] == nil {
		s.wanted[name] = map[Wish]map[string]bool{}
	}
	if s.wanted[name][wish] == nil {
		s.wanted[name][wish] = map[string]bool{}
	}
	s.wanted[name][wish][owner] = true
	c := s.live[name]
	if c == nil {
		return
	}
	if w := c.watches[wish]; w != nil && w.tired(s.Clock.Now()) {
		delete(c.watches, wish)
	}
	if c.watches[wish] == nil {
		s.begin(c, wish)
	}
}

// drop has an owner not want a wish any more. The caller holds the lock.
func (s *Sights) drop(name string, wish Wish, owner string) {
	delete(s.wanted[name][wish], owner)
	if len(s.wanted[name][wish]) > 0 {
		return
	}
	delete(s.wanted[name], wish)
	if len(s.wanted[name]) == 0 {
		delete(s.wanted, name)
	}
	c := s.live[name]
	if c == nil {
		return
	}
	if w := c.watches[wish]; w != nil {
		w.cancel()
		delete(c.watches, wish)
	}
	// One that there was no room for has some now.
	for _, waiting := range slices.SortedFunc(maps.Keys(s.wanted[name]), byText) {
		if len(c.watches) >= mostWatches {
			return
		}
		if c.watches[waiting] == nil {
			s.begin(c, waiting)
		}
	}
}

func byText(a, b Wish) int {
	switch a, b := a.String(), b.String(); {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Look returns what is seen by a wish.
func (s *Sights) Look(name string, wish Wish) Seen {
	s.mu.Lock()
	c := s.live[name]
	var w *watch
	if c != nil {
		w = c.watches[wish]
	}
	s.mu.Unlock()
	switch {
	case c == nil:
		return Seen{} // whoever asks knows by the Cluster whether there is to be a connection
	case w == nil:
		return Seen{Problem: fmt.Sprintf("%s cannot be watched in cluster %q: %s watch %d things there, and that is the most", wish, name, s.For, mostWatches)}
	}
	if problem := w.trouble(); problem != "" {
		return Seen{Problem: problem}
	}
	if !w.informer.HasSynced() {
		return Seen{}
	}
	found := caches.All[*unstructured.Unstructured](w.informer.GetStore())
	return Seen{Objects: slices.DeleteFunc(found, func(o *unstructured.Unstructured) bool { return !wish.means(o) }), Known: true}
}

// Run implements connection.Runner: it watches what is wanted of a cluster until ctx ends.
func (s *Sights) Run(ctx context.Context, connected *connection.Connection) error {
	return s.run(ctx, connected.Name, connected.Dynamic)
}

func (s *Sights) run(ctx context.Context, name string, client dynamic.Interface) error {
	c := &cluster{
		name: name, ctx: ctx, client: client, group: &errgroup.Group{}, watches: map[Wish]*watch{},
		budget: bounds.NewBudget(mostObjects, mostBytes, nil),
	}
	s.mu.Lock()
	s.live[name] = c
	for _, wish := range slices.SortedFunc(maps.Keys(s.wanted[name]), byText) {
		s.begin(c, wish)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	if s.live[name] == c {
		delete(s.live, name)
	}
	s.mu.Unlock()
	return c.group.Wait()
}

// begin starts a watch, if there is room. The caller holds the lock.
func (s *Sights) begin(c *cluster, wish Wish) {
	if len(c.watches) >= mostWatches || c.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	gate := c.budget.Gate()
	w := &watch{cancel: cancel}
	w.informer = dynamicinformer.NewFilteredDynamicInformer(c.client, wish.Resource, wish.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		if wish.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, wish.Name).String()
		} else {
			o.LabelSelector = wish.Label
		}
		gate.Tweak(o)
	}).Informer()
	counted := gate.Transform(func(obj any) (any, error) { return s.Trim(obj.(*unstructured.Unstructured)), nil })
	// The informer has not been started, so none of these can fail.
	_ = w.informer.SetTransform(func(obj any) (any, error) {
		out, err := counted(obj)
		if exceeded := new(bounds.ExceededError); errors.As(err, &exceeded) {
			s.giveUp(c, wish, w)
		}
		return out, err
	})
	_ = gate.Watch(w.informer)
	_ = w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Watch interrupted", "for", s.For, "cluster", c.name, "of", wish.String(), "err", err)
		if problem := s.refusal(c.name, wish, err); problem != "" && w.says(problem) {
			s.Changed(c.name, wish, nil, nil)
		}
	})
	registration, _ := w.informer.AddEventHandler(s.handler(c.name, wish, w))
	c.watches[wish] = w
	c.group.Go(func() error {
		defer gate.Close()
		w.informer.RunWithContext(ctx)
		return nil
	})
	c.group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.says("")
			s.Changed(c.name, wish, nil, nil)
		}
		return nil
	})
}

// means reports whether an object is what was asked for, whatever the cluster has sent.
func (w Wish) means(o *unstructured.Unstructured) bool {
	if o == nil || o.GetNamespace() != w.Namespace || w.Name != "" && o.GetName() != w.Name {
		return false
	}
	_, labelled := o.GetLabels()[w.Label]
	return w.Name != "" || labelled
}

// giveUp ends a watch that shows more than is kept.
func (s *Sights) giveUp(c *cluster, wish Wish, w *watch) {
	why := fmt.Sprintf("%s cannot be shown: %s keep %d objects and %d MiB of a cluster, and in cluster %q that is not enough", wish, s.For, mostObjects, mostBytes>>20, c.name)
	if w.ends(why, s.Clock.Now()) {
		s.Changed(c.name, wish, nil, nil)
	}
}

// refusal says why a cluster does not let us see something, "" if that passes.
func (s *Sights) refusal(name string, wish Wish, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("Manifold has no right to watch %s in cluster %q; to give it, join again with %s", wish, name, s.Grant)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("cluster %q does not serve %s", name, wish.Resource.GroupResource())
	}
	return ""
}

// handler tells of objects.
func (s *Sights) handler(name string, wish Wish, w *watch) cache.ResourceEventHandler {
	tell := func(before, after any) {
		w.says("") // it answers
		last, _ := before.(*unstructured.Unstructured)
		now, _ := after.(*unstructured.Unstructured)
		if !wish.means(last) && !wish.means(now) {
			return
		}
		s.Changed(name, wish, last, now)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell(nil, obj) },
		UpdateFunc: func(old, obj any) { tell(old, obj) },
		DeleteFunc: func(obj any) { tell(caches.Last(obj), nil) },
	}
}
