package pods

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// podStrategy takes mirrored pods as their cluster's syncer reports them: metadata, spec and status in one write, with the UID and the
// age that the pod has below, so that both ends speak of the same pod.
type podStrategy struct {
	builtin.Strategy
}

func (s podStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if _, ok := identity.BySyncer(ctx); !ok {
		s.Strategy.PrepareForCreate(ctx, obj)
		return
	}
	pod := obj.(*api.Pod)
	pod.UID = types.UID(pod.Annotations[v1alpha1.AnnotationUID])
	if created, err := time.Parse(time.RFC3339, pod.Annotations[v1alpha1.AnnotationCreated]); err == nil {
		pod.CreationTimestamp = metav1.NewTime(created)
	}
	takeReported(pod)
}

func (s podStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if _, ok := identity.BySyncer(ctx); !ok {
		s.Strategy.PrepareForUpdate(ctx, obj, old)
		return
	}
	pod, before := obj.(*api.Pod), old.(*api.Pod)
	if mirrored(before) {
		metadata.KeepManagers(pod, before)
	}
	takeReported(pod)
}

// takeReported moves what a syncer reports in annotations to where it belongs. The generation of a mirror is that of the pod below; that of
// another pod is counted above.
func takeReported(pod *api.Pod) {
	if generation, err := strconv.ParseInt(pod.Annotations[v1alpha1.AnnotationGeneration], 10, 64); err == nil {
		pod.Generation = generation
	}
	for _, key := range []string{v1alpha1.AnnotationUID, v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration} {
		metadata.SetAnnotation(pod, key, "")
	}
}

// Validate trusts what another API server has accepted, as long as a syncer speaks for its own cluster.
func (s podStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if cluster, ok := identity.BySyncer(ctx); ok {
		return validateMirror(obj.(*api.Pod), cluster)
	}
	return s.Strategy.Validate(ctx, obj)
}

func (s podStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if cluster, ok := identity.BySyncer(ctx); ok {
		errs := validateMirror(old.(*api.Pod), cluster)
		if pod := obj.(*api.Pod); !letGo(pod, old.(*api.Pod)) {
			errs = append(errs, validateMirror(pod, cluster)...)
		}
		return errs
	}
	if pod := old.(*api.Pod); mirrored(pod) && !labelledAnew(obj.(*api.Pod), pod) {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("the pod mirrors one in cluster %q, and only its labels, annotations and owners can be changed here, and finalizers and scheduling gates taken off: "+
				"change the workload that it belongs to", clusterOf(pod)))}
	}
	return s.Strategy.ValidateUpdate(ctx, obj, old)
}

// ValidateDeclaratively is skipped for mirrors: the cluster below has done it.
func (s podStrategy) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, config rest.DeclarativeValidationConfig) field.ErrorList {
	if _, ok := identity.BySyncer(ctx); ok {
		return errs
	}
	return s.Strategy.ValidateDeclaratively(ctx, obj, old, errs, op, config)
}

func (s podStrategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if _, ok := identity.BySyncer(ctx); ok {
		return nil
	}
	return s.Strategy.WarningsOnCreate(ctx, obj)
}

func validateMirror(pod *api.Pod, cluster string) field.ErrorList {
	var errs field.ErrorList
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != cluster {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "nodeName"),
			fmt.Sprintf("the syncer of cluster %q may not report a pod of %q", cluster, pod.Spec.NodeName)))
	} else if !runsIn(pod, cluster) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationCluster),
			fmt.Sprintf("the syncer of cluster %q may only report pods that are there", cluster)))
	}
	if pod.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationUID), "a mirror carries its pod's UID"))
	}
	return errs
}

// mirrored reports whether a pod only shows one that a controller made below. A pod that a user made above, and that
// was placed, is no mirror: what happens below is told by its status.
func mirrored(pod *api.Pod) bool {
	_, ok := pod.Annotations[v1alpha1.AnnotationCluster]
	return ok
}

// clusterOf returns the cluster that is known to run a pod, "" while there is none.
func clusterOf(pod *api.Pod) string { return projection.ClusterRunning(pod, pod.Spec.NodeName) }

// uidBelow is the UID that a pod has in its cluster.
func uidBelow(pod *api.Pod) types.UID { return projection.UIDBelow(pod) }

// runsIn reports whether a pod is in a cluster: as a mirror, or made there, or placed there while no cluster is known to have it.
func runsIn(pod *api.Pod, cluster string) bool {
	waits := pod.Annotations[v1alpha1.AnnotationPodCluster]
	switch {
	case !mirrored(pod) && waits != "":
		return waits == cluster
	case mirrored(pod), pod.Spec.NodeName != "" && uidBelow(pod) != "":
		return clusterOf(pod) == cluster
	}
	decision, err := placement.ParseDecision(pod.Annotations[v1alpha1.AnnotationPlacement])
	_, placed := decision[cluster]
	return err == nil && placed
}

// letGo reports whether an update only tells of a pod that waited in a cluster that it is there no more, so that another one makes it.
func letGo(pod, old *api.Pod) bool {
	return old.Annotations[v1alpha1.AnnotationPodCluster] != "" && !mirrored(pod) && equality.Semantic.DeepEqual(pod.Spec, old.Spec) &&
		pod.Annotations[v1alpha1.AnnotationPodCluster] == "" && uidBelow(pod) == "" &&
		pod.Annotations[v1alpha1.AnnotationPlacement] == old.Annotations[v1alpha1.AnnotationPlacement]
}

// labelledAnew reports whether an update leaves everything but labels, annotations and owners as it is, and finalizers and scheduling gates that it
// takes off: whoever holds a pod by one of them, as those do who queue workloads, lets it go here.
func labelledAnew(pod, old *api.Pod) bool {
	holds := slices.ContainsFunc(pod.Finalizers, func(f string) bool { return !slices.Contains(old.Finalizers, f) }) ||
		slices.ContainsFunc(pod.Spec.SchedulingGates, func(g api.PodSchedulingGate) bool { return !slices.Contains(old.Spec.SchedulingGates, g) })
	ungated := old.Spec // of which only what differs is written
	ungated.SchedulingGates = pod.Spec.SchedulingGates
	return equality.Semantic.DeepEqual(pod.Spec, ungated) && !holds
}
