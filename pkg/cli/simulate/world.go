package simulate

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/config"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// world is everything that decisions depend on.
type world struct {
	// namespace is that of objects that name none.
	namespace string
	// served tells that the policies are those of a logical cluster, so that none is missing.
	served     bool
	clusters   []v1alpha1.Cluster
	wide       []v1alpha1.ClusterPlacementPolicy
	namespaced []v1alpha1.PlacementPolicy
	namespaces map[string]*corev1.Namespace
	workloads  []workload
}

// workload is one of the manifests, and where it runs.
type workload struct {
	placement.Workload
	current placement.Decision
}

// add takes an object into account. One of the same name is replaced, so that what is tried out wins over what there is. Objects that
// have no part in placement are left out.
func (w *world) add(object runtime.Object) error {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a %T is no object", object)
	}
	gvk := u.GroupVersionKind()
	if gvk.Group == v1alpha1.GroupName {
		return w.addOwn(u)
	}
	kind, known := projection.ForGVK(gvk)
	if !known {
		return nil
	}
	typed := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true); err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	if namespace, is := typed.(*corev1.Namespace); is {
		w.addNamespace(namespace)
		return nil
	}
	if !kind.Workload || kind.Mirror(typed) || metav1.GetControllerOf(typed) != nil {
		return nil
	}
	if typed.GetNamespace() == "" {
		typed.SetNamespace(w.namespace)
	}
	if template := kind.Demand(typed).Template; template != nil {
		requestLimits(&template.Spec)
	}
	placed, err := kind.WorkloadOf(typed)
	if err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	current, err := placement.ParseDecision(typed.GetAnnotations()[v1alpha1.AnnotationPlacement])
	if err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	w.workloads = append(w.workloads, workload{placed, current})
	return nil
}

// requestLimits gives containers what an API server gives them: a request where there is only a limit.
func requestLimits(pods *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pods.InitContainers, pods.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, has := r.Requests[name]; !has {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
}

func (w *world) addNamespace(namespace *corev1.Namespace) {
	if w.namespaces == nil {
		w.namespaces = map[string]*corev1.Namespace{}
	}
	w.namespaces[namespace.Name] = namespace
}

// addOwn takes objects of Manifold's own kinds, with defaults as the server gives them, and refuses what the server would refuse.
func (w *world) addOwn(u *unstructured.Unstructured) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	typed, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	scheme.Default(typed)
	var problems field.ErrorList
	switch o := typed.(type) {
	case *v1alpha1.Cluster:
		problems = validation.ValidateCluster(o)
		w.clusters = put(w.clusters, *o, func(c v1alpha1.Cluster) bool { return c.Name == o.Name })
	case *v1alpha1.ClusterPlacementPolicy:
		problems = validation.ValidateClusterPlacementPolicy(o)
		w.wide = put(w.wide, *o, func(p v1alpha1.ClusterPlacementPolicy) bool { return p.Name == o.Name })
	case *v1alpha1.PlacementPolicy:
		if o.Namespace == "" {
			o.Namespace = w.namespace
		}
		problems = validation.ValidatePlacementPolicy(o)
		w.namespaced = put(w.namespaced, *o, func(p v1alpha1.PlacementPolicy) bool { return p.Namespace == o.Namespace && p.Name == o.Name })
	}
	if err := problems.ToAggregate(); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

func put[T any](list []T, value T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = value
		return list
	}
	return append(list, value)
}

// simulate places all workloads in the order of the manifests, and then once more without the clusters that are lost.
func (w *world) simulate(lost []string) (*Report, error) {
	if len(w.workloads) == 0 {
		return nil, errors.New("the manifests hold no workloads")
	}
	if !w.served && len(w.wide) == 0 {
		policy, err := config.DefaultPolicy()
		if err != nil {
			return nil, err
		}
		w.wide = append(w.wide, *policy)
	}
	for _, name := range lost {
		if !slices.ContainsFunc(w.clusters, func(c v1alpha1.Cluster) bool { return c.Name == name }) {
			return nil, fmt.Errorf("--without %s: there is no such cluster", name)
		}
	}
	loads := loads{}
	results, err := w.placeAll(w.clusters, loads)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	for i := range results {
		report.Workloads = append(report.Workloads, entryOf(&w.workloads[i], results[i]))
	}
	if len(lost) == 0 {
		return report, nil
	}
	report.Without = lost
	left := slices.DeleteFunc(slices.Clone(w.clusters), func(c v1alpha1.Cluster) bool { return slices.Contains(lost, c.Name) })
	for i := range results {
		w.workloads[i].current = results[i].Decision
	}
	if results, err = w.placeAll(left, loads); err != nil {
		return nil, err
	}
	for i := range results {
		before := report.Workloads[i].Result.Decision
		report.Workloads[i].Before, report.Workloads[i].Result = before, results[i]
	}
	return report, nil
}

// loads are what simulated decisions put on clusters, less what was there before.
type loads map[string]placement.Resources

func (l loads) add(cluster string, requests placement.Resources, replicas int64) {
	if l[cluster] == nil {
		l[cluster] = placement.Resources{}
	}
	l[cluster].Add(requests, replicas)
}

func (w *world) placeAll(clusters []v1alpha1.Cluster, loads loads) ([]placement.Result, error) {
	decisions := make([]placement.Decision, len(w.workloads))
	for i := range w.workloads {
		decisions[i] = w.workloads[i].current
	}
	results := make([]placement.Result, 0, len(w.workloads))
	for i := range w.workloads {
		request, err := w.request(i, decisions)
		if err != nil {
			return nil, err
		}
		observed := make([]placement.Cluster, 0, len(clusters))
		for j := range clusters {
			observed = append(observed, placement.Observe(&clusters[j], placement.Load{Assumed: loads[clusters[j].Name].Amounts()}))
		}
		result := placement.Place(placement.NewSnapshot(observed), request)
		for cluster, share := range result.Decision {
			loads.add(cluster, request.Workload.Requests, int64(share.Replicas))
		}
		for cluster, share := range request.Current {
			loads.add(cluster, request.Workload.Requests, -int64(share.Replicas))
		}
		decisions[i] = result.Decision
		results = append(results, result)
	}
	return results, nil
}

// request completes a workload as the server does.
func (w *world) request(i int, decisions []placement.Decision) (placement.Request, error) {
	work := w.workloads[i].Workload
	work.NamespaceLabels = w.labelsOf(work.Namespace)
	work.Failures = nil // they count for some minutes, and nobody knows when the manifests were written
	if namespace := w.namespaces[work.Namespace]; namespace != nil && work.Pin == nil {
		if text, ok := namespace.Annotations[v1alpha1.AnnotationClusters]; ok {
			pin, err := v1alpha1.ParsePin(text)
			if err != nil {
				return placement.Request{}, fmt.Errorf("namespace %s: annotation %s: %w", work.Namespace, v1alpha1.AnnotationClusters, err)
			}
			work.Pin = &pin
		}
	}
	policy, err := placement.SelectPolicy(work, w.namespaced, w.wide)
	if err != nil {
		return placement.Request{}, err
	}
	request := placement.Request{Workload: work, Policy: policy, Current: decisions[i], Neighbours: placement.Neighbours{}}
	for j := range w.workloads {
		other := &w.workloads[j]
		if j == i {
			continue
		}
		if other.Namespace == work.Namespace && other.Division != placement.Everywhere {
			request.Neighbours.Add(decisions[j])
		}
		request.Others = append(request.Others, placement.Other{
			Kind: other.GVK.Kind, Group: other.GVK.Group, Namespace: other.Namespace, Name: other.Name, Labels: other.Labels,
			NamespaceLabels: w.labelsOf(other.Namespace), Clusters: decisions[j].Clusters(), Pinned: w.pinned(other),
		})
	}
	placement.KeepApart(&work, request.Others, w.namespaced, w.wide)
	return request, nil
}

// pinned tells whether a workload or its namespace is.
func (w *world) pinned(work *workload) bool {
	if work.Pin != nil {
		return true
	}
	namespace := w.namespaces[work.Namespace]
	return namespace != nil && namespace.Annotations[v1alpha1.AnnotationClusters] != ""
}

// labelsOf are the labels of a namespace, with the one that every API server sets.
func (w *world) labelsOf(namespace string) map[string]string {
	out := map[string]string{corev1.LabelMetadataName: namespace}
	if n := w.namespaces[namespace]; n != nil {
		for key, value := range n.Labels {
			out[key] = value
		}
	}
	return out
}
