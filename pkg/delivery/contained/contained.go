// Package contained is the table of the built-in kinds that Applications may contain: those of the table of all kinds that say so, and those that
// controllers of the logical cluster carry out, which go to no cluster.
package contained

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
