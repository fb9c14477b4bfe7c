package metrics

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	client "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// nodeREST serves what clusters use, each as one node: that which mirrors it.
type nodeREST struct {
	common

	sources Sources
}

// New returns an empty object.
func (*nodeREST) New() runtime.Object { return &v1beta1.NodeMetrics{} }

// NewList returns an empty list.
func (*nodeREST) NewList() runtime.Object { return &v1beta1.NodeMetricsList{} }

// NamespaceScoped says that nodes have no namespace.
func (*nodeREST) NamespaceScoped() bool { return false }

// Get returns what a cluster uses.
func (r *nodeREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	list, err := r.list(ctx, named(name))
	if err != nil {
		return nil, err
	}
	return only(list.Items, "nodes", name)
}

// List returns what the selected clusters use.
func (r *nodeREST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.list(ctx, options)
}

func (r *nodeREST) list(ctx context.Context, options *metainternalversion.ListOptions) (*v1beta1.NodeMetricsList, error) {
	list := &v1beta1.NodeMetricsList{Items: []v1beta1.NodeMetrics{}}
	nodes, err := r.selected(selectorOf(options))
	if err != nil || len(nodes) == 0 {
		return list, err
	}
	answers, absent := ask(ctx, r.sources, slices.Sorted(maps.Keys(nodes)), allNodes)
	if len(answers) == 0 {
		return nil, unavailable(absent)
	}
	warn(ctx, absent)
	for _, cluster := range slices.Sorted(maps.Keys(answers)) {
		list.Items = append(list.Items, sum(nodes[cluster], answers[cluster], metav1.Now()))
	}
	return list, nil
}

// errNoNodes is what a metrics API says that has just started.
var errNoNodes = errors.New("its metrics API knows none of its nodes yet, try again in a minute")

func allNodes(ctx context.Context, cluster client.MetricsV1beta1Interface) ([]v1beta1.NodeMetrics, error) {
	list, err := cluster.NodeMetricses().List(ctx, metav1.ListOptions{})
	if err == nil && len(list.Items) == 0 {
		return nil, errNoNodes
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// selected returns the mirrored nodes that a request is about, by the names of their clusters.
func (r *nodeREST) selected(by selector) (map[string]*corev1.Node, error) {
	if err := r.sources.ready(); err != nil {
		return nil, err
	}
	all, err := r.sources.Nodes.List(by.labels)
	if err != nil {
		return nil, err
	}
	nodes := map[string]*corev1.Node{}
	for _, node := range all {
		if status.IsMirror(node) && by.matches(node) {
			nodes[node.Name] = node
		}
	}
	return nodes, nil
}

// sum returns what a cluster's own nodes use together, as of the oldest of their samples.
func sum(mirror *corev1.Node, own []v1beta1.NodeMetrics, now metav1.Time) v1beta1.NodeMetrics {
	out := v1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: mirror.Name, Labels: mirror.Labels, CreationTimestamp: now},
		Usage:      corev1.ResourceList{},
	}
	for i, node := range own {
		if i == 0 || node.Timestamp.Before(&out.Timestamp) {
			out.Timestamp = node.Timestamp
		}
		out.Window.Duration = max(out.Window.Duration, node.Window.Duration)
		addUsage(out.Usage, node.Usage)
	}
	return out
}

func addUsage(to, more corev1.ResourceList) {
	for name, quantity := range more {
		total := to[name]
		total.Add(quantity)
		to[name] = total
	}
}
