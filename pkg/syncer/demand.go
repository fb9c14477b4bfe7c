package syncer

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var (
	deploymentResource     = appsv1.SchemeGroupVersion.WithResource("deployments")
	serviceResource        = corev1.SchemeGroupVersion.WithResource("services")
	serviceAccountResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	namespaceResource      = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// DecisionOf reads the decision that an object carries. One that does not parse counts as none: the placement controller writes a new one.
func DecisionOf(obj projection.Object) placement.Decision {
	text := obj.GetAnnotations()[v1alpha1.AnnotationPlacement]
	if text == "" {
		return nil
	}
	decision, err := placement.ParseDecision(text)
	if err != nil {
		return nil
	}
	return decision
}

// share returns what a cluster should hold of an object: false if nothing. A workload says so itself; everything else is wanted where a
// workload that needs it is.
func (u *Upstream) share(kind projection.Kind, obj projection.Object, cluster string) (placement.Share, bool) {
	if kind.Workload {
		share, ok := DecisionOf(obj)[cluster]
		return share, ok
	}
	for _, d := range u.needing(keyOf(kind, obj)) {
		if u.runs(d, cluster) {
			return placement.Share{}, true
		}
	}
	return placement.Share{}, false
}

// runs tells whether a cluster should run a workload or still does: what the pods need stays until they have left.
func (u *Upstream) runs(d *appsv1.Deployment, cluster string) bool {
	if _, decided := DecisionOf(d)[cluster]; decided {
		return true
	}
	s, ok := u.Syncer(cluster)
	return ok && s.holds(Key{Resource: deploymentResource, Namespace: d.Namespace, Name: d.Name})
}

// needing returns the workloads that need an object beside them.
func (u *Upstream) needing(key Key) []*appsv1.Deployment {
	switch key.Resource {
	case namespaceResource:
		return u.deploymentsIn(key.Name)
	case serviceResource:
		service, ok := u.get(key).(*corev1.Service)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(u.deploymentsIn(key.Namespace), func(d *appsv1.Deployment) bool {
			return !projection.Selects(service, d.Spec.Template.Labels)
		})
	}
	out := byIndex[*appsv1.Deployment](u, deploymentResource, key)
	for _, account := range byIndex[*corev1.ServiceAccount](u, serviceAccountResource, key) {
		out = append(out, byIndex[*appsv1.Deployment](u, deploymentResource,
			Key{Resource: serviceAccountResource, Namespace: account.Namespace, Name: account.Name})...)
	}
	return out
}

// byIndex returns the objects of a kind that refer to key.
func byIndex[T projection.Object](u *Upstream, of schema.GroupVersionResource, key Key) []T {
	// The index exists: NewUpstream made it.
	found, _ := u.stores[of].ByIndex(byReference, referenceIndex(key))
	out := make([]T, 0, len(found))
	for _, obj := range found {
		if typed, ok := obj.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// dependents returns what a workload needs beside it, in the order in which it should be there: the namespace first.
func (u *Upstream) dependents(d *appsv1.Deployment) []Key {
	keys := []Key{{Resource: namespaceResource, Name: d.Namespace}}
	for _, ref := range projection.References(d) {
		key := Key{Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name}
		if account := u.accountSecrets(key); account != nil {
			keys = append(keys, account...)
		}
		keys = append(keys, key)
	}
	for _, service := range u.servicesIn(d.Namespace) {
		if projection.Selects(service, d.Spec.Template.Labels) {
			keys = append(keys, Key{Resource: serviceResource, Namespace: service.Namespace, Name: service.Name})
		}
	}
	return keys
}

// accountSecrets returns what a ServiceAccount itself refers to.
func (u *Upstream) accountSecrets(key Key) []Key {
	if key.Resource != serviceAccountResource {
		return nil
	}
	account, ok := u.get(key).(*corev1.ServiceAccount)
	if !ok {
		return nil
	}
	var keys []Key
	for _, ref := range projection.References(account) {
		keys = append(keys, Key{Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name})
	}
	return keys
}
