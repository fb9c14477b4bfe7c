// Package controller makes the placement decisions that admission could not make: for workloads that came before any cluster, and when
// clusters, policies or namespaces change. It tells users why a workload is not placed.
package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// workers is how many workloads are decided about at a time. A decision takes microseconds; they wait for its write.
const workers = 8

// Reasons of events.
const (
	// ReasonPlaced is that of a workload that was placed, or moved, after it was written.
	ReasonPlaced = "Placed"
	// ReasonUnplaced is that of a workload that no cluster can run.
	ReasonUnplaced = "Unplaced"
	// ReasonPlacedPartly is that of a workload that is placed with something worth knowing: replicas that wait for room, or that went
	// elsewhere than the rest of the namespace.
	ReasonPlacedPartly = "PlacementNote"
)

// Options say what a Controller works with.
type Options struct {
	Engine   *engine.Engine
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Client writes decisions, as Manifold itself.
	Client   kubernetes.Interface
	Recorder record.EventRecorder
}

// Controller keeps the decisions of all workloads current.
type Controller struct {
	Options
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced      []cache.InformerSynced

	mu sync.Mutex
	// told is the last message about each workload, so that each is told once. Workloads that wait for a cluster are in waiting.
	told    map[types.UID]string
	waiting map[cache.ObjectName]bool
	// repinned are the workloads whose namespace was given another pin since they were decided about.
	repinned map[cache.ObjectName]bool
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options:     o,
		deployments: o.Kube.Apps().V1().Deployments().Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "placement"}),
		told:     map[types.UID]string{},
		waiting:  map[cache.ObjectName]bool{},
		repinned: map[cache.ObjectName]bool{},
	}
	manifold := o.Manifold.Manifold().V1alpha1()
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{o.Kube.Apps().V1().Deployments().Informer(), c.workloadHandler()},
		{o.Kube.Core().V1().Namespaces().Informer(), c.namespaceHandler()},
		{manifold.Clusters().Informer(), c.clusterHandler()},
		{manifold.PlacementPolicies().Informer(), c.policyHandler()},
		{manifold.ClusterPlacementPolicies().Informer(), c.policyHandler()},
	} {
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
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// sync decides about one workload and stores the decision if it is another one.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) error {
	d, err := c.deployments.Deployments(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		c.wait(name, false)
		return nil
	}
	if err != nil {
		return err
	}
	if d.DeletionTimestamp != nil {
		c.forget(d)
		return nil
	}
	w, err := WorkloadOf(d)
	if err != nil {
		c.tell(d, corev1.EventTypeWarning, ReasonUnplaced, err.Error())
		return nil
	}
	current, err := placement.ParseDecision(d.Annotations[v1alpha1.AnnotationPlacement])
	if err != nil {
		current = nil
	}
	w.Repinned = w.Pin == nil && c.isRepinned(name)
	result, ready := c.Engine.Place(w, current)
	if !ready {
		return errors.New("the clusters are not known yet")
	}
	c.wait(name, len(result.Decision) == 0 || result.Unplaced > 0)
	if !result.Decision.Equal(current) {
		if err := c.write(ctx, d, result.Decision); err != nil {
			return err
		}
		c.Engine.Placed(w, result.Decision)
	}
	c.repin(name, false)
	c.explain(d, current, result)
	return nil
}

// write stores a decision on the object it was made for: if that has changed meanwhile, it is decided anew.
func (c *Controller) write(ctx context.Context, d *appsv1.Deployment, decision placement.Decision) error {
	var value any
	if len(decision) > 0 {
		value = decision.String()
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             d.UID,
		"resourceVersion": d.ResourceVersion,
		"annotations":     map[string]any{v1alpha1.AnnotationPlacement: value},
	}})
	if err != nil {
		return fmt.Errorf("encode the decision: %w", err)
	}
	_, err = c.Client.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// explain writes an event when there is something to tell that has not been told.
func (c *Controller) explain(d *appsv1.Deployment, before placement.Decision, result placement.Result) {
	switch {
	case len(result.Decision) == 0:
		c.tell(d, corev1.EventTypeWarning, ReasonUnplaced, result.Message())
	case result.Unplaced > 0 || len(result.Notes) > 0:
		c.tell(d, corev1.EventTypeNormal, ReasonPlacedPartly, result.Message())
	case !result.Decision.Equal(before):
		c.tell(d, corev1.EventTypeNormal, ReasonPlaced, result.Message())
	}
}

func (c *Controller) tell(d *appsv1.Deployment, eventType, reason, message string) {
	c.mu.Lock()
	known := c.told[d.UID] == message
	c.told[d.UID] = message
	c.mu.Unlock()
	if !known {
		c.Recorder.Event(d, eventType, reason, message)
	}
}

func (c *Controller) wait(name cache.ObjectName, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits {
		c.waiting[name] = true
	} else {
		delete(c.waiting, name)
	}
}

func (c *Controller) isRepinned(name cache.ObjectName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repinned[name]
}

func (c *Controller) repin(name cache.ObjectName, repinned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if repinned {
		c.repinned[name] = true
	} else {
		delete(c.repinned, name)
	}
}

func (c *Controller) forget(d *appsv1.Deployment) {
	c.wait(cache.MetaObjectToName(d), false)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, d.UID)
	delete(c.repinned, cache.MetaObjectToName(d))
}

func (c *Controller) workloadHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(*appsv1.Deployment))) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*appsv1.Deployment), obj.(*appsv1.Deployment)
			if before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) ||
				before.Annotations[v1alpha1.AnnotationPlacement] != after.Annotations[v1alpha1.AnnotationPlacement] {
				c.queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(obj any) {
			if d, ok := obj.(*appsv1.Deployment); ok {
				c.forget(d)
			}
		},
	}
}

// namespaceHandler looks again at the workloads of a namespace whose pin or labels change.
func (c *Controller) namespaceHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueueNamespace(obj.(*corev1.Namespace).Name) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*corev1.Namespace), obj.(*corev1.Namespace)
			repinned := before.Annotations[v1alpha1.AnnotationClusters] != after.Annotations[v1alpha1.AnnotationClusters]
			if repinned {
				for _, d := range c.deploymentsIn(after.Name) {
					c.repin(cache.MetaObjectToName(d), true)
				}
			}
			if repinned || !maps.Equal(before.Labels, after.Labels) {
				c.enqueueNamespace(after.Name)
			}
		},
	}
}

// clusterHandler looks at every workload again when it matters to where they may run, and at those that wait for room when there may be
// some.
func (c *Controller) clusterHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.enqueueAll() },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
			if eligibilityChanged(before, after) {
				c.enqueueAll()
				return
			}
			if !equality.Semantic.DeepEqual(before.Status, after.Status) {
				c.enqueueWaiting()
			}
		},
		DeleteFunc: func(any) { c.enqueueAll() },
	}
}

func eligibilityChanged(before, after *v1alpha1.Cluster) bool {
	ready := func(cl *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionTrue(cl.Status.Conditions, v1alpha1.ClusterReady)
	}
	return ready(before) != ready(after) ||
		!maps.Equal(before.Labels, after.Labels) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Annotations[v1alpha1.AnnotationRemove] != after.Annotations[v1alpha1.AnnotationRemove] ||
		before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
		!equality.Semantic.DeepEqual(before.Spec.Limits, after.Spec.Limits)
}

func (c *Controller) policyHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.enqueueAll() },
		DeleteFunc: func(any) { c.enqueueAll() },
		UpdateFunc: func(old, obj any) {
			if old.(metav1.Object).GetGeneration() != obj.(metav1.Object).GetGeneration() {
				c.enqueueAll()
			}
		},
	}
}

func (c *Controller) enqueueAll() { c.enqueueNamespace(metav1.NamespaceAll) }

func (c *Controller) enqueueNamespace(namespace string) {
	for _, d := range c.deploymentsIn(namespace) {
		c.queue.Add(cache.MetaObjectToName(d))
	}
}

func (c *Controller) deploymentsIn(namespace string) []*appsv1.Deployment {
	list, _ := c.deployments.Deployments(namespace).List(labels.Everything()) // listing from a cache cannot fail
	return list
}

func (c *Controller) enqueueWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.waiting {
		c.queue.Add(name)
	}
}
