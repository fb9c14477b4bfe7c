package addresses

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Gateway is one of the Gateway API that this cluster has.
type Gateway struct {
	// Above is the metadata of the object of the logical cluster that it is a copy of.
	Above *metav1.PartialObjectMetadata
	// Published are its addresses there.
	Published []string
	// Services are those that routes of the cluster lead to from it.
	Services []cache.ObjectName
}

// Behind is what runs behind a Gateway in a cluster.
type Behind struct {
	// Any says that any workload is behind it, Stays that one of them is to run in the cluster, and Runs that the cluster has one.
	Any, Stays, Runs bool
	// Asks says that the last replicas of one are to end once the addresses have left the status.
	Asks bool
	// Unserved says that nothing of any is ready where the cluster leads to.
	Unserved bool
}

// BehindServices tells of the workloads that Services lead to in this cluster.
func (a *Addresses) BehindServices(services []cache.ObjectName) Behind {
	behind := a.selectedBy(services)
	return Behind{
		Any: len(behind) > 0, Stays: a.stays(behind),
		Runs:     slices.ContainsFunc(behind, a.runs),
		Asks:     slices.ContainsFunc(behind, func(w identity.Workload) bool { return a.States.Of(w.Key()).Addressed }),
		Unserved: len(behind) > 0 && !slices.ContainsFunc(services, a.serves),
	}
}

// serves reports whether anything that a Service leads to is ready in this cluster. One that the cluster has only to lead to the others of its network
// serves without.
func (a *Addresses) serves(name cache.ObjectName) bool {
	service := a.service(name)
	if service == nil {
		return false
	}
	behind := a.selectedBy([]cache.ObjectName{name})
	return a.ready(behind) || len(behind) > 0 && !a.stays(behind) && a.Demand.Endpoints.Lead(service, a.Name)
}

// service returns the Service of a name, nil if there is none.
func (a *Addresses) service(name cache.ObjectName) *corev1.Service {
	service, _ := a.Demand.Get(identity.Key{Resource: identity.Services, Namespace: name.Namespace, Name: name.Name}).(*corev1.Service)
	return service
}

// runs reports whether this cluster has anything of a workload.
func (a *Addresses) runs(w identity.Workload) bool {
	if w.Kind.Custom {
		return identity.CopiesOf(w.Object)[a.Name].Generation > 0
	}
	return a.ProjectionOf(w.Kind, w.Object) != nil
}

// selectedBy returns the workloads that Services lead to, some perhaps several times.
func (a *Addresses) selectedBy(names []cache.ObjectName) []identity.Workload {
	services, _ := projection.ForResource(identity.Services)
	var out []identity.Workload
	for _, name := range names {
		if service := a.service(name); service != nil {
			out = append(out, a.behind(object{services, service})...)
		}
	}
	return out
}

// ofGateways returns the addresses of Gateways that keep the last replicas of a workload in this cluster.
func (a *Addresses) ofGateways(w identity.Workload) []*moves.Address {
	if a.Gateways == nil {
		return nil
	}
	var out []*moves.Address
	for _, g := range a.Gateways() {
		if len(g.Published) == 0 || g.Above.DeletionTimestamp != nil {
			continue
		}
		behind := a.selectedBy(g.Services)
		if !slices.ContainsFunc(behind, func(other identity.Workload) bool { return other.Key() == w.Key() }) || a.stays(behind) {
			continue
		}
		if found := a.keeping(g.Published[0], "Gateway "+g.Above.Name, a.drain(g.Above, w), identity.CopiesOf(g.Above)[a.Name].Withdrawal); found != nil {
			out = append(out, found)
		}
	}
	return out
}
