package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

// A volume claim goes where a workload uses it. One that nothing uses is bound all the same on a single cluster, if its class says so. Here it
// goes where its namespace is, and so carries a decision of its own. That is made late: most claims are written a moment before what uses
// them, which may run anywhere.

const (
	// claimSettles is how long after its making what uses a claim may be on its way.
	claimSettles = 10 * time.Second
	// claimWorkers is how many claims are decided about at a time.
	claimWorkers = 4
)

// reasonFirstConsumer and firstConsumer are what the stock controller says of a claim whose volume is made when a pod that uses it is scheduled.
const (
	reasonFirstConsumer = "WaitForFirstConsumer"
	firstConsumer       = "waiting for first consumer to be created before binding"
)

var claimResource = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")

// claims decides about volume claims that nothing uses.
type claims struct {
	*Controller
	lister   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]

	mu sync.Mutex
	// told has the last message about each claim. waiting are those that wait for a cluster, or for what uses them.
	told records.Told
	// stays is the volume of the logical cluster that each claim was told of which waits for one.
	stays   map[types.UID]string
	waiting map[cache.ObjectName]bool
}

func newClaims(c *Controller, core coreinformers.Interface, clusters listers.ClusterLister) *claims {
	return &claims{
		Controller: c, lister: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(), clusters: clusters,
		queue:   work.NewQueue[cache.ObjectName](c.Queues.Of("placement_claims"), firstRetry, lastRetry),
		stays:   map[types.UID]string{},
		waiting: map[cache.ObjectName]bool{},
	}
}

// handler is for claims.
func (c *claims) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(*corev1.PersistentVolumeClaim))) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.PersistentVolumeClaim), obj.(*corev1.PersistentVolumeClaim)
			if annotated(before, after, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationClusters, v1alpha1.AnnotationStatus) {
				c.queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(obj any) {
			obj = caches.Last(obj)
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
				c.forget(cache.MetaObjectToName(claim), claim.UID)
			}
		},
	}
}

// changed looks again at the claims that wait.
func (c *claims) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.waiting {
		c.queue.Add(name)
	}
}

// released looks at the claims that a workload which is gone has used.
func (c *claims) released(of projection.Object) {
	kind, _ := projection.KindOf(of)
	for _, name := range claimsOf(kind, of) {
		c.queue.Add(cache.NewObjectName(of.GetNamespace(), name))
	}
}

func (c *claims) forget(name cache.ObjectName, uid types.UID) {
	c.told.Forget(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.stays, uid)
	delete(c.waiting, name)
}

func (c *claims) wait(name cache.ObjectName, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, name)
	if waits {
		c.waiting[name] = true
	}
}

// sync decides about a claim that nothing uses, once.
func (c *claims) sync(ctx context.Context, name cache.ObjectName) error {
	claim, err := c.lister.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.wait(name, false)
	c.tellVolume(claim)
	if !c.alone(claim) {
		return nil
	}
	if left := claim.CreationTimestamp.Add(claimSettles).Sub(c.Clock.Now()); left > 0 {
		c.queue.AddAfter(name, left)
		return nil
	}
	w := placement.ClaimWorkload(claim)
	decided, ready := c.Engine.Decide(w, nil)
	if !ready {
		return errors.New("the clusters are not known yet")
	}
	if len(decided.Decision) == 0 {
		c.wait(name, true)
		c.tellClaim(claim, corev1.EventTypeWarning, placement.ReasonUnplaced, decided.Message())
		return nil
	}
	switch waits, known := c.waitsForConsumer(claim, decided.Decision); {
	case !known:
		c.wait(name, true)
		return nil
	case waits:
		c.wait(name, true)
		c.tellClaim(claim, corev1.EventTypeNormal, reasonFirstConsumer, firstConsumer)
		return nil
	}
	if err := c.write(ctx, item{claimResource, name}, claim, nil, decided.Result); err != nil {
		return err
	}
	c.shown(item{claimResource, name})
	c.tellClaim(claim, corev1.EventTypeNormal, placement.ReasonPlaced, decided.Message()+", as nothing that is placed uses it")
	return nil
}

// shown forgets which version of a claim was written: nothing about it is decided twice.
func (c *claims) shown(name item) {
	c.Controller.mu.Lock()
	defer c.Controller.mu.Unlock()
	delete(c.decided, name)
}

// alone reports whether a claim has to be decided about: it is no mirror and in no cluster yet, nobody has pinned it, and nothing uses it.
func (c *claims) alone(claim *corev1.PersistentVolumeClaim) bool {
	annotations := claim.Annotations
	_, refused := projection.NamespaceRefusal(claim.Namespace)
	if claim.DeletionTimestamp != nil || refused || annotations[v1alpha1.AnnotationCluster] != "" || annotations[v1alpha1.AnnotationStatus] != "" ||
		annotations[v1alpha1.AnnotationClusters] != "" {
		return false
	}
	if slices.ContainsFunc(identity.WholeDecisionOf(claim).Clusters(), func(name string) bool { _, err := c.clusters.Get(name); return err == nil }) {
		return false
	}
	for resource, store := range c.stores {
		kind, _ := projection.ForResource(resource)
		used, _ := store.ByIndex(cache.NamespaceIndex, claim.Namespace) // informers of a factory have the index
		if slices.ContainsFunc(used, func(obj any) bool { return uses(kind, obj.(projection.Object), claim.Name) }) {
			return false
		}
	}
	return true
}

// uses reports whether a workload uses a claim of that name: its pods name it, or it is one of those that are made for its replicas.
func uses(kind projection.Kind, of projection.Object, claim string) bool {
	if kind.Mirror(of) || kind.Demand(of).Finished {
		return false
	}
	if _, numbered := kind.ClaimOrdinal(of, claim); numbered {
		return true
	}
	return slices.Contains(claimsOf(kind, of), claim)
}

// claimsOf returns the claims that the pods of a workload name.
func claimsOf(kind projection.Kind, of projection.Object) []string {
	demand := kind.Demand(of)
	if demand.Template == nil {
		return nil
	}
	var out []string
	for i := range demand.Template.Spec.Volumes {
		if claim := demand.Template.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			out = append(out, claim.ClaimName)
		}
	}
	return out
}

// waitsForConsumer reports whether a cluster of a decision makes the volume of a claim only for a pod that uses it. It is not known as long as
// the classes of one of them are not.
func (c *claims) waitsForConsumer(claim *corev1.PersistentVolumeClaim, decision placement.Decision) (waits, known bool) {
	for _, name := range decision.Clusters() {
		cluster, err := c.clusters.Get(name)
		if err != nil || cluster.Status.Classes == nil {
			return false, false
		}
		if class := placement.StorageClassOf(claim, cluster.Status.Classes); class != nil && class.WaitForFirstConsumer {
			return true, true
		}
	}
	return false, true
}

// tellClaim writes an event unless it was told last.
func (c *claims) tellClaim(claim *corev1.PersistentVolumeClaim, eventType, reason, message string) {
	if c.told.News(claim.UID, "decision", message) {
		c.Recorder.Event(claim, eventType, reason, message)
	}
}
