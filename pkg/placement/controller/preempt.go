package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func refOf(name item) engine.Ref {
	kind, _ := projection.ForResource(name.resource)
	return engine.Ref{Kind: kind.GVK.Kind, Namespace: name.Namespace, Name: name.Name}
}

// itemFor is the reverse of refOf; false for a kind that there is not.
func itemFor(ref engine.Ref) (item, bool) {
	kinds := projection.Workloads()
	i := slices.IndexFunc(kinds, func(k projection.Kind) bool { return k.GVK.Kind == ref.Kind })
	if i < 0 {
		return item{}, false
	}
	return item{kinds[i].Resource, cache.NewObjectName(ref.Namespace, ref.Name)}, true
}

// look has workloads decided about anew because of what was decided about another one.
func (c *Controller) look(at []engine.Ref) {
	for _, ref := range at {
		if name, ok := itemFor(ref); ok {
			c.queue.Add(name)
		}
	}
}

// bookAgain has workloads wait again, after a start, for the room that others move out of: before these are decided about, or they might
// return to it. Only what has no place waits.
func (c *Controller) bookAgain() {
	for _, name := range c.workloadsIn(metav1.NamespaceAll) {
		obj, exists, _ := c.stores[name.resource].GetByKey(name.String())
		if !exists {
			continue
		}
		kind, _ := projection.ForResource(name.resource)
		w, err := kind.WorkloadOf(obj.(projection.Object))
		if err != nil || w.Division == placement.Everywhere {
			continue
		}
		current, err := placement.ParseDecision(obj.(projection.Object).GetAnnotations()[v1alpha1.AnnotationPlacement])
		if err != nil || current.Total() >= int64(w.Replicas) {
			continue
		}
		if decided, known := c.Engine.Decide(w, current); known {
			c.look(c.Engine.Book(w, decided))
		}
	}
}

// tellStopped tells the workloads whose pods are stopped for the sake of d, once for each time that it takes room of others.
func (c *Controller) tellStopped(d projection.Object, stops []engine.Stop) {
	all := ""
	for _, stop := range stops {
		all += stop.String() + ": " + stop.Message + "\n"
	}
	if !c.told.News(d.GetUID(), "stops", all) {
		return
	}
	for _, stop := range stops {
		name, ok := itemFor(stop.Ref)
		if !ok {
			continue
		}
		if victim, exists, _ := c.stores[name.resource].GetByKey(name.String()); exists {
			c.Recorder.Event(victim.(projection.Object), corev1.EventTypeWarning, ReasonPreempted, stop.Message)
		}
	}
}
