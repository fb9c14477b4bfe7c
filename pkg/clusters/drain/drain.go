// Package drain tells how far clusters are that everything is to move off. The moves themselves follow from the taint, like those from any
// other taint with the effect NoExecute.
package drain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// named is how many workloads a message names before it only counts them.
	named = 5
	// look is how often a drain is looked at: what is ours below is seen through many caches.
	look = time.Second
)

// Upstream is the logical cluster.
type Upstream interface {
	// HasSynced reports whether all of it is known.
	HasSynced() bool
	// Occupants returns the workloads that a cluster is to run or still has.
	Occupants(cluster string) []identity.Workload
}

// Options say what a Controller works with.
type Options struct {
	Upstream Upstream
	// Queues are the names of the queues.
	Queues work.Names
	// Decide decides about a workload anew, and tells by which pin. It returns false when the clusters are not known yet.
	Decide func(w placement.Workload, current placement.Decision) (result placement.Result, pin *v1alpha1.Pin, known bool)
	// DecideSynced reports whether it knows all that it decides by.
	DecideSynced func() bool
	// Custom returns the names of the objects of unknown kinds that are placed on a cluster.
	Custom   func(cluster string) []string
	Manifold externalversions.SharedInformerFactory
	// Clusters writes as Manifold itself.
	Clusters versioned.Interface
}

// Controller keeps the condition Drained of clusters that are being drained.
type Controller struct {
	Options
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[string]
	synced   []cache.InformerSynced
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	informer := o.Manifold.Manifold().V1alpha1().Clusters()
	c := &Controller{
		Options:  o,
		clusters: informer.Lister(),
		queue:    work.NewQueue[string](o.Queues.Of("drain"), 100*time.Millisecond, 10*time.Second),
	}
	wake := func(obj any) {
		cluster := obj.(*v1alpha1.Cluster)
		if draining(cluster) || meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterDrained) != nil {
			c.queue.Add(cluster.Name)
		}
	}
	registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	c.synced = []cache.InformerSynced{registration.HasSynced, o.Upstream.HasSynced, o.DecideSynced}
	return c, nil
}

// Run tells of drains until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, 1, c.sync)
	return nil
}

// draining reports whether everything is to move off a cluster, and it is to stay all the same.
func draining(cluster *v1alpha1.Cluster) bool {
	if cluster.DeletionTimestamp != nil {
		return false // the condition Removed tells of that
	}
	for _, taint := range cluster.Spec.Taints {
		if taint.Key == v1alpha1.TaintDrain {
			return true
		}
	}
	return false
}

func (c *Controller) sync(ctx context.Context, name string) error {
	cluster, err := c.clusters.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	next := cluster.DeepCopy()
	if draining(cluster) {
		progress := c.progress(name)
		progress.ObservedGeneration = cluster.Generation
		meta.SetStatusCondition(&next.Status.Conditions, progress)
		c.queue.AddAfter(name, look)
	} else {
		meta.RemoveStatusCondition(&next.Status.Conditions, v1alpha1.ClusterDrained)
	}
	if equality.Semantic.DeepEqual(cluster.Status, next.Status) {
		return nil
	}
	_, err = c.Clusters.ManifoldV1alpha1().Clusters().UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// progress tells what a cluster still has, and what of that cannot leave.
func (c *Controller) progress(cluster string) metav1.Condition {
	var moving, ending, stuck []string
	for _, w := range c.Upstream.Occupants(cluster) {
		why, ends := c.obstacle(w, cluster)
		switch {
		case why == "":
			moving = append(moving, w.String())
		case ends:
			ending = append(ending, fmt.Sprintf("%s: %s", w, why))
		default:
			stuck = append(stuck, fmt.Sprintf("%s: %s", w, why))
		}
	}
	for _, name := range c.Custom(cluster) {
		stuck = append(stuck, name+": it leaves once another chosen cluster can take it")
	}
	return condition(moving, ending, stuck)
}

// condition writes what still moves, what will end where it is, and what cannot move.
func condition(moving, ending, stuck []string) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ClusterDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDraining}
	var clauses []string
	if len(moving) > 0 {
		clauses = append(clauses, fmt.Sprintf("%d moving: %s", len(moving), enumerate(moving, ", ")))
	}
	if len(ending) > 0 {
		clauses = append(clauses, fmt.Sprintf("%d finishing there: %s", len(ending), enumerate(ending, "; ")))
	}
	if len(stuck) > 0 {
		clauses = append(clauses, fmt.Sprintf("%d cannot move: %s", len(stuck), enumerate(stuck, "; ")))
	}
	switch {
	case len(clauses) == 0:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonDrained, "no workload is left"
		return out
	case len(moving) > 0:
	case len(stuck) > 0:
		out.Reason = v1alpha1.ReasonStuck
	default:
		out.Reason = v1alpha1.ReasonWaiting
	}
	out.Message = strings.Join(clauses, "; ")
	return out
}

// obstacle says why a workload does not leave a cluster, or "", and whether it will end there.
func (c *Controller) obstacle(of identity.Workload, cluster string) (why string, ends bool) {
	decision := identity.WholeDecisionOf(of)
	if _, placed := decision[cluster]; !placed {
		return "", false
	}
	if holders := projection.HeldBy(of.Object); of.Kind.Lingers(of.Object) {
		return "it is being deleted and waits for its finalizers to be removed: " + strings.Join(holders, ", "), true
	}
	w, err := of.Kind.WorkloadOf(of.Object)
	if err != nil {
		return err.Error(), false
	}
	result, pin, known := c.Decide(w, decision)
	if _, stays := result.Decision[cluster]; !known || !stays {
		return "", false
	}
	return whyStays(w, pin, result, cluster), w.Fixed && w.Restarts
}

// whyStays says why the decision about a workload keeps it on a cluster that it should leave. pin is the one that counts, which may be its
// namespace's.
func whyStays(w placement.Workload, pin *v1alpha1.Pin, result placement.Result, cluster string) string {
	switch {
	case w.Fixed && w.Restarts:
		return "it has started, so it is not moved: it leaves when it ends, and \"cluster drain --force\" starts it over elsewhere"
	case w.Fixed:
		return "it cannot be moved, only deleted"
	case slices.Contains(result.Tied, cluster):
		return "its volumes cannot move; " + words.TiedAdvice
	}
	why := result.Obstacle(cluster)
	if why == "" {
		why = "there is not enough room elsewhere"
	}
	switch {
	case pin == nil || pin.All || len(pin.Names) == 0:
		return why
	case !slices.ContainsFunc(pin.Names, func(name string) bool { return name != cluster }):
		return pinnedBy(pin, w.Pin == nil)
	default:
		return why + "; " + pinnedBy(pin, w.Pin == nil)
	}
}

// pinnedBy says that a pin keeps a workload where it is, and what its user can do.
func pinnedBy(pin *v1alpha1.Pin, ofNamespace bool) string {
	quoted := make([]string, len(pin.Names))
	for i, name := range pin.Names {
		quoted[i] = strconv.Quote(name)
	}
	by := "annotation " + v1alpha1.AnnotationClusters
	if ofNamespace {
		by += " of its namespace"
	}
	return fmt.Sprintf("pinned to %s by %s: unpin it or pin it elsewhere", enumerate(quoted, ", "), by)
}

func enumerate(names []string, separator string) string {
	if len(names) <= named {
		return strings.Join(names, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(names[:named], separator), separator, len(names)-named)
}
