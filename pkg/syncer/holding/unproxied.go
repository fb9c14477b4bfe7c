package holding

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/services"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Unproxied counts, of so many replicas of a workload that are ready in this cluster, those that requests do not get to yet everywhere in it by the
// Services of its application. Delivery sends a variant no requests before they do. It is counted where an application shares out requests over variants
// alone: every other workload would be written once more for it. What is told of the workload is told again when there may be fewer.
func (h *Holder) Unproxied(w identity.Workload, ready int32) int32 {
	live := h.Below.Get(w.Key())
	if w.GetAnnotations()[v1alpha1.AnnotationVariant] == "" || !trust.Ours(live, w) {
		return 0
	}
	leading := h.leading(w)
	if len(leading) == 0 {
		return 0
	}
	young := h.Inside.Young() // also while no pod is ready, so that what is to be known then is watched
	if ready == 0 {
		return 0
	}
	count := func() (n int32) {
		lacking := sets.New[types.UID]()
		for _, service := range leading {
			n = max(n, h.unproxied(w, live, service, ready, lacking))
		}
		if young { // as after a restart
			last := identity.BreakdownOf(w)[h.Name]
			n -= last.Ready - last.Unproxied
		}
		return max(0, min(ready, n+int32(len(lacking))))
	}
	if count() == 0 {
		return 0
	}
	for _, service := range leading {
		h.Inside.Await(cache.MetaObjectToName(service), services.Waiter{Key: w.Key()})
	}
	return count() // what has changed before that has woken nobody
}

// unproxied adds the pods that requests do not get to by a Service, and returns how many replicas there are besides of which that is not known.
func (h *Holder) unproxied(w identity.Workload, live, service projection.Object, ready int32, lacking sets.Set[types.UID]) int32 {
	kind, _ := projection.ForResource(identity.Services)
	inside := h.Below.Get(identity.KeyOf(kind, service))
	if inside == nil {
		if kind.Selects(service, w.Kind, w.Object) && h.Wanted(kind, service, h.Name) {
			return ready // it is about to be there
		}
		return 0
	}
	// What it selects in the cluster counts: while a release goes on, that may be one variant alone.
	if !kind.Selects(inside, w.Kind, live) {
		return 0
	}
	_, proxied, known := h.Inside.Leads(cache.MetaObjectToName(service))
	if !known {
		return ready
	}
	pods := h.ready(w, live)
	lack(lacking, pods, proxied, kind, inside)
	return max(0, ready-int32(len(pods))) // their watch may be behind that of the workload
}

// leading are the Services of the application that a workload belongs to, if any of them is for one variant alone, or is held otherwise in some cluster.
func (h *Holder) leading(w identity.Workload) []projection.Object {
	app := w.GetLabels()[v1alpha1.LabelApplication]
	if app == "" {
		return nil
	}
	of := slices.DeleteFunc(h.Above.ObjectsIn(identity.Services, w.GetNamespace()), func(service projection.Object) bool {
		return service.GetLabels()[v1alpha1.LabelApplication] != app
	})
	if !slices.ContainsFunc(of, sharesRequests) {
		return nil
	}
	return of
}

// sharesRequests reports whether a Service is there to share out requests.
func sharesRequests(service projection.Object) bool {
	says := service.GetAnnotations()
	variant := says[v1alpha1.AnnotationVariant]
	return says[v1alpha1.AnnotationServiceOf] != "" || says[v1alpha1.AnnotationRoutes] != "" || variant != "" && variant != v1alpha1.VariantPrimary
}
