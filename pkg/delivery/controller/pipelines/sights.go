package pipelines

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// want has everything seen that is to be seen of clusters, and nothing else.
func (l *look) want() {
	sights := map[string][]Sight{}
	for at := range places(l.pipeline) {
		cluster, err := l.clusters.Get(at.cluster)
		if at.cluster == "" || err != nil || !cluster.Spec.Allows.Pipelines ||
			l.lacks(weave.Target{Namespace: at.namespace, ClusterRef: &weave.ClusterReference{Name: at.cluster}}) != "" {
			continue
		}
		_, err = l.namespaces.Get(at.namespace)
		sights[at.cluster] = append(sights[at.cluster], l.sightsOf(cluster, at.namespace, !apierrors.IsNotFound(err))...)
	}
	l.Sights.Want(ownerOf(l.pipeline), sights)
}

// sightsOf are what is to be seen of a namespace of a cluster: what carries the labels of pipelines, of all kinds that the cluster serves, or the app
// alone where that is named, and whether there is the namespace, unless the logical cluster has it as well.
func (l *look) sightsOf(cluster *manifold.Cluster, namespace string, shared bool) []Sight {
	var out []Sight
	if !shared {
		out = append(out, Sight{Resource: namespaces, Name: namespace})
	}
	app := l.pipeline.Spec.AppRef
	for kind, resource := range served(cluster) {
		if app != nil && versions.KindOf(app) == kind {
			out = append(out, Sight{Resource: resource, Namespace: namespace, Name: app.Name})
		}
		for _, label := range []string{weave.PipelineLabel, weave.OlderPipelineLabel} {
			if app == nil {
				out = append(out, Sight{Resource: resource, Namespace: namespace, Label: label})
			}
		}
	}
	slices.SortFunc(out, func(a, b Sight) int {
		return strings.Compare(a.Resource.String()+a.Label+a.Name, b.Resource.String()+b.Label+b.Name)
	})
	return out
}

// served are the kinds of workloads that a cluster serves, each in its newest version.
func served(cluster *manifold.Cluster) map[schema.GroupKind]schema.GroupVersionResource {
	out := map[schema.GroupKind]schema.GroupVersionResource{}
	for kind, resource := range versions.BuiltIn {
		out[kind] = resource
	}
	newest := map[schema.GroupKind]string{}
	for _, name := range cluster.Status.Kinds {
		kind, rest, _ := strings.Cut(name, ".")
		of, group, _ := strings.Cut(rest, ".")
		gk := schema.GroupKind{Group: group, Kind: kind}
		resource, counts := versions.Custom[gk]
		if counts && (newest[gk] == "" || version.CompareKubeAwareVersionStrings(of, newest[gk]) > 0) {
			newest[gk], out[gk] = of, resource.WithVersion(of)
		}
	}
	return out
}
