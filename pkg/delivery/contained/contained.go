// Package contained is the table of the built-in kinds that Applications may contain: those of the table of all kinds that say so, and those that
// controllers of the logical cluster carry out, which go to no cluster.
package contained

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Kind is a built-in kind that Applications may contain.
type Kind struct {
	// GVK is the version of the kind that is read and written.
	GVK schema.GroupVersionKind
	// Resource is what the API serves the kind as.
	Resource schema.GroupVersionResource
	// Workload reports whether objects of the kind are placed.
	Workload bool
	// Delivered says how Applications deal with objects of the kind.
	Delivered projection.Delivered
}

var (
	// Autoscalers scale what is in the logical cluster.
	Autoscalers = Kind{
		GVK:       autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		Resource:  autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"),
		Delivered: projection.Selected,
	}
	cronJobs = Kind{
		GVK:       batchv1.SchemeGroupVersion.WithKind("CronJob"),
		Resource:  batchv1.SchemeGroupVersion.WithResource("cronjobs"),
		Delivered: projection.Selectable,
	}

	// Applications and PlacementPolicies are kinds of our own that applications contain where their ServiceAccount may write them, see Granted.
	Applications      = granted(delivery.SchemeGroupVersion, "Application", "applications")
	PlacementPolicies = granted(manifold.SchemeGroupVersion, "PlacementPolicy", "placementpolicies")
)

// Kinds returns all kinds that Applications may contain, those first of which they contain what fits their selector.
func Kinds() []Kind {
	out := []Kind{Autoscalers, cronJobs}
	for _, k := range projection.Kinds() {
		if k.Delivered >= projection.Contained {
			out = append(out, Kind{k.GVK, k.Resource, k.Workload, k.Delivered})
		}
	}
	slices.SortStableFunc(out, func(a, b Kind) int { return int(b.Delivered) - int(a.Delivered) })
	return out
}

func granted(version schema.GroupVersion, kind, resource string) Kind {
	return Kind{GVK: version.WithKind(kind), Resource: version.WithResource(resource)}
}

// Granted returns the kinds of Kubernetes that give or bound rights, or otherwise go beyond what delivery writes by rights of its own. Applications contain them where
// their ServiceAccount may write them. They stay in the logical cluster, of which other parts watch all of them anyway.
func Granted() []Kind {
	return []Kind{
		granted(rbacv1.SchemeGroupVersion, "Role", "roles"),
		granted(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings"),
		granted(corev1.SchemeGroupVersion, "ResourceQuota", "resourcequotas"),
		granted(corev1.SchemeGroupVersion, "LimitRange", "limitranges"),
		granted(discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices"),
	}
}
