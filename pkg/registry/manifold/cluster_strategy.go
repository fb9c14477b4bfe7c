package manifold

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// clusterStrategy is for everything about a cluster but its status.
type clusterStrategy struct{ group.Strategy }

func (clusterStrategy) NamespaceScoped() bool { return false }

// GetResetFields names what PrepareForCreate and PrepareForUpdate reset, so that who applies it does not come to own it.
func (clusterStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "status")
}

func (clusterStrategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	cluster := object.(*v1alpha1.Cluster)
	cluster.Status = v1alpha1.ClusterStatus{}
	cluster.Generation = 1
	stampTaints(cluster.Spec.Taints, nil)
	// However a cluster comes to be registered, it goes only after what is ours there has gone.
	if !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerCluster) {
		cluster.Finalizers = append(cluster.Finalizers, v1alpha1.FinalizerCluster)
	}
}

func (clusterStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	cluster, before := object.(*v1alpha1.Cluster), old.(*v1alpha1.Cluster)
	cluster.Status = before.Status
	stampTaints(cluster.Spec.Taints, before.Spec.Taints)
	if !apiequality.Semantic.DeepEqual(cluster.Spec, before.Spec) {
		cluster.Generation = before.Generation + 1
	}
}

// stampTaints notes since when there are taints that drive workloads out, where the writer does not say: how long they are tolerated
// counts from then on.
func stampTaints(taints, before []corev1.Taint) {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute || taint.TimeAdded != nil {
			continue
		}
		was := slices.IndexFunc(before, func(b corev1.Taint) bool { return b.MatchTaint(taint) })
		if was >= 0 && before[was].TimeAdded != nil {
			taint.TimeAdded = before[was].TimeAdded
			continue
		}
		now := metav1.Now()
		taint.TimeAdded = &now
	}
}

func (clusterStrategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validation.ValidateCluster(object.(*v1alpha1.Cluster))
}

func (clusterStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterUpdate(object.(*v1alpha1.Cluster), old.(*v1alpha1.Cluster))
}

// clusterStatusStrategy is for the status of a cluster, and lets nothing else change.
type clusterStatusStrategy struct{ clusterStrategy }

// GetResetFields names what PrepareForUpdate resets, so that who applies it does not come to own it.
func (clusterStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return group.ResetFields(v1alpha1.SchemeGroupVersion, "spec", "metadata")
}

// PrepareForUpdate keeps the metadata as well as the spec: whoever may only report must not be able to relabel a cluster, since
// policies select clusters by their labels.
func (clusterStatusStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	cluster, before := object.(*v1alpha1.Cluster), old.(*v1alpha1.Cluster)
	cluster.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(cluster, before)
}

func (clusterStatusStrategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterStatusUpdate(object.(*v1alpha1.Cluster), old.(*v1alpha1.Cluster))
}
