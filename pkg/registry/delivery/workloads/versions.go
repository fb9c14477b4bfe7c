package workloads

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// named is an item without versions.
func named(gvk schema.GroupVersionKind, namespace, name string) v1alpha1.WorkloadVersion {
	return v1alpha1.WorkloadVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadVersion"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "." + strings.ToLower(gvk.Kind)},
		Workload:   v1alpha1.VersionedWorkload{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name},
	}
}

func itemOf(gvk schema.GroupVersionKind, above metav1.Object) v1alpha1.WorkloadVersion {
	out := named(gvk, above.GetNamespace(), above.GetName())
	out.UID, out.Labels, out.CreationTimestamp = above.GetUID(), above.GetLabels(), above.GetCreationTimestamp()
	return out
}

// versionOf tells what each cluster holds of an object of the logical cluster.
func (o Options) versionOf(gvk schema.GroupVersionKind, above projection.Object) v1alpha1.WorkloadVersion {
	out := itemOf(gvk, above)
	if app, ok := above.(*v1alpha1.Application); ok {
		out.Clusters = applied(app)
	}
	if kind, placed := projection.ForGVK(gvk); placed {
		for _, cluster := range holders(above) {
			out.Clusters = append(out.Clusters, o.in(kind, above, cluster))
		}
	}
	if len(out.Clusters) == 0 {
		of, _ := versions.Of(above)
		out.Clusters = []v1alpha1.ClusterVersion{{Version: of.Version, Images: of.Images}}
	}
	return out
}

// holders are the clusters that have a workload, or are to have it.
func holders(above projection.Object) []string {
	out := identity.DecisionOf(above).Clusters()
	for cluster := range identity.BreakdownOf(above) {
		out = append(out, cluster)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// in tells what a cluster holds of a workload: as it stands or at a revision, with what policies change of it there.
func (o Options) in(kind projection.Kind, above projection.Object, cluster string) v1alpha1.ClusterVersion {
	out := v1alpha1.ClusterVersion{Cluster: cluster}
	if at := identity.RevisionIn(above, cluster); !at.OfView() {
		out.Revision = at.Name
	}
	fail := func(err error) v1alpha1.ClusterVersion {
		out.Error = text.Line(err.Error(), longestError)
		return out
	}
	version, err := o.Held.In(kind, above, cluster)
	if err != nil {
		return fail(err)
	}
	content := version.Object
	overrides, err := o.Overrides(kind, above, cluster)
	if err != nil {
		return fail(err)
	}
	if template := kind.Demand(content).Template; template != nil && len(overrides.Items) > 0 {
		changed, err := kind.Overridden(content, template, overrides)
		if err != nil {
			return fail(err)
		}
		copied, ok := content.DeepCopyObject().(projection.Object)
		if ok {
			changed.DeepCopyInto(kind.Demand(copied).Template)
			content = copied
		}
	}
	of, _ := versions.Of(content)
	out.Version, out.Images = of.Version, of.Images
	return out
}

// applied tells which revision of an application each cluster runs.
func applied(app *v1alpha1.Application) (out []v1alpha1.ClusterVersion) {
	for i := range app.Status.Targets {
		for _, c := range app.Status.Targets[i].Clusters {
			of, known := versions.ApplicationIn(app, c.Name)
			if known && !slices.ContainsFunc(out, func(has v1alpha1.ClusterVersion) bool { return has.Cluster == c.Name }) {
				out = append(out, v1alpha1.ClusterVersion{Cluster: c.Name, Version: of.Version, Revision: c.LiveRevision})
			}
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.ClusterVersion) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// copied tells what each cluster holds of an object of a custom kind.
func (o Options) copied(gvk schema.GroupVersionKind, above *unstructured.Unstructured) v1alpha1.WorkloadVersion {
	out := itemOf(gvk, above)
	out.Chart = chartOf(above)
	clusters, reported := identity.CopiedTo(above), identity.CopiesOf(above)
	for _, cluster := range clusters {
		of, heard := reported[cluster]
		shown, _ := versions.CopyIn(versions.Copy{Above: above, Reported: of, Heard: heard, Alone: len(clusters) == 1})
		out.Clusters = append(out.Clusters, v1alpha1.ClusterVersion{Cluster: cluster, Version: shown.Version, Images: shown.Images})
	}
	if len(clusters) == 0 {
		of, _ := versions.Of(above)
		out.Clusters = []v1alpha1.ClusterVersion{{Version: of.Version, Images: of.Images}}
	}
	return out
}

// chartOf is the name of the chart that a HelmRelease installs.
func chartOf(above *unstructured.Unstructured) string {
	for _, path := range [][]string{{"spec", "chart", "spec", "chart"}, {"spec", "chartRef", "name"}} {
		if name, _, _ := unstructured.NestedString(above.Object, path...); name != "" {
			return text.Line(name, longestError)
		}
	}
	return ""
}
