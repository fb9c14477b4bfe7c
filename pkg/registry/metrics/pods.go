package metrics

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	client "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// podREST serves what the pods of the logical cluster use, mirrored ones and those that were placed. Other pods of the clusters are not
// its business.
type podREST struct {
	common

	sources Sources
}

// New returns an empty object.
func (*podREST) New() runtime.Object { return &v1beta1.PodMetrics{} }

// NewList returns an empty list.
func (*podREST) NewList() runtime.Object { return &v1beta1.PodMetricsList{} }

// NamespaceScoped says that pods have a namespace.
func (*podREST) NamespaceScoped() bool { return true }

// Get returns what a pod uses.
func (r *podREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	list, err := r.list(ctx, named(name))
	if err != nil {
		return nil, err
	}
	return only(list.Items, "pods", request.NamespaceValue(ctx)+"/"+name)
}

// List returns what the selected pods use.
func (r *podREST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.list(ctx, options)
}

func (r *podREST) list(ctx context.Context, options *metainternalversion.ListOptions) (*v1beta1.PodMetricsList, error) {
	list := &v1beta1.PodMetricsList{Items: []v1beta1.PodMetrics{}}
	namespace, by := request.NamespaceValue(ctx), selectorOf(options)
	pods, err := r.selected(namespace, by)
	if err != nil || len(pods) == 0 {
		return list, err
	}
	answers, absent := ask(ctx, r.sources, slices.Sorted(maps.Keys(pods)),
		func(ctx context.Context, cluster client.MetricsV1beta1Interface) (*v1beta1.PodMetricsList, error) {
			return cluster.PodMetricses(namespace).List(ctx, by.below())
		})
	if len(answers) == 0 {
		return nil, unavailable(absent)
	}
	warn(ctx, absent)
	for cluster, answer := range answers {
		list.Items = append(list.Items, mirrored(pods[cluster], answer.Items, metav1.Now())...)
	}
	sortPods(list.Items)
	return list, nil
}

// mirrors are the pods above that stand for pods of one cluster, by name.
type mirrors map[cache.ObjectName]*corev1.Pod

// selected returns the pods that a request is about, by cluster.
func (r *podREST) selected(namespace string, by selector) (map[string]mirrors, error) {
	if err := r.sources.ready(); err != nil {
		return nil, err
	}
	all, err := r.sources.Pods.Pods(namespace).List(by.labels)
	if err != nil {
		return nil, err
	}
	pods := map[string]mirrors{}
	for _, pod := range all {
		cluster := projection.ClusterOf(pod)
		if cluster == "" || !by.matches(pod) {
			continue
		}
		if pods[cluster] == nil {
			pods[cluster] = mirrors{}
		}
		pods[cluster][cache.MetaObjectToName(pod)] = pod
	}
	return pods, nil
}

// mirrored returns the metrics of those pods of a cluster that are known above, with the labels that they have there.
func mirrored(pods mirrors, below []v1beta1.PodMetrics, now metav1.Time) []v1beta1.PodMetrics {
	out := make([]v1beta1.PodMetrics, 0, len(pods))
	for _, m := range below {
		mirror, ok := pods[cache.ObjectName{Namespace: m.Namespace, Name: m.Name}]
		if !ok {
			continue
		}
		out = append(out, v1beta1.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: mirror.Labels, CreationTimestamp: now},
			Timestamp:  m.Timestamp,
			Window:     m.Window,
			Containers: m.Containers,
		})
	}
	return out
}
