package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/target"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// typed returns a workload of a built-in kind, nil for an object of another kind and for one that is not placed, such as a mirror.
func typed(object *unstructured.Unstructured) (*identity.Workload, error) {
	kind, ok := projection.ForGVK(object.GroupVersionKind())
	if !ok || !kind.Workload {
		return nil, nil
	}
	out := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, err
	}
	if kind.Mirror(out) {
		return nil, nil
	}
	return &identity.Workload{Kind: kind, Object: out}, nil
}

// read gives what placement needs to know of an object, and the first ordinal of its replicas. It returns false for an object that is
// not placed. BuiltIn is what typed returns of it, the versions are all that the kind is served in, and of is how a policy describes it, nil if
// none does.
func read(object *unstructured.Unstructured, builtIn *identity.Workload, versions []string, of *engine.Description) (
	w placement.Workload, first int32, placed bool, err error,
) {
	gvk := object.GroupVersionKind()
	_, ours := projection.ForGVK(gvk)
	if !ours && target.IsCustom(gvk.Group) && object.GetNamespace() != "" {
		others := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == gvk.Version })
		if of == nil {
			w, err = projection.CustomWorkload(gvk, others, object)
			return w, 0, true, err
		}
		w, err = projection.Custom(gvk, "", projection.PodPathsOf(&of.CustomWorkload)).WorkloadOf(object)
		w.Versions = others
		return w, 0, true, err
	}
	if builtIn == nil {
		return w, 0, false, nil
	}
	w, err = builtIn.Kind.WorkloadOf(builtIn.Object)
	return w, builtIn.Kind.Demand(builtIn.Object).First, true, err
}

// stays says how an object of a custom kind would get to a cluster.
func stays(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	return fmt.Sprintf("it stays in the logical cluster, as objects of custom kinds do unless their own annotation %s names clusters "+
		"or a policy lists %s.%s in spec.workloads.kinds", manifoldv1alpha1.AnnotationClusters, gvk.Kind, gvk.Group)
}

// unplaced says why an object of a kind that is not placed has no decision, and where to look instead.
func unplaced(object *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return fmt.Sprintf("it is not placed by itself: it belongs to %s %s, which can be explained instead", owner.Kind, owner.Name)
	}
	gk := object.GroupVersionKind().GroupKind()
	_, follows := projection.ForGVK(object.GroupVersionKind())
	never, protected := projection.NamespaceRefusal(object.GetNamespace())
	switch {
	case follows && protected:
		return "it is not sent to any cluster: " + never
	case gk == claims:
		return aboutClaim(object)
	case follows:
		return "it is not placed by itself: it follows the workloads that need it, and goes to the clusters that its own annotation " +
			manifoldv1alpha1.AnnotationClusters + " names"
	case gk == volumes:
		return "it is not placed by itself: it goes along with the volume claim that it is for, to clusters that take such volumes (manifold cluster " +
			"join NAME --cluster-kubeconfig FILE --allow-volumes)"
	case gk == manifoldv1alpha1.SchemeGroupVersion.WithKind("Cluster").GroupKind():
		return "workloads are placed on it"
	default:
		return "objects of this kind are not placed: they stay in the logical cluster"
	}
}

// claims are the volume claims that users make.
var claims = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()

// volumes are those that users make by hand.
var volumes = corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind()

// aboutClaim says where a volume claim is, or goes.
func aboutClaim(object *unstructured.Unstructured) string {
	text := "it is not placed by itself: it follows the workloads that use it, and goes to the clusters that its own annotation " +
		manifoldv1alpha1.AnnotationClusters + " names"
	settled := identity.WholeDecisionOf(object)
	if len(settled) == 0 {
		return text + "; as long as nothing uses it, it goes where its namespace is, unless its class waits for a pod"
	}
	return fmt.Sprintf("no placed workload uses it, or did when this was decided, so it went where its namespace is: %s", strings.Join(settled.Clusters(), ", "))
}
