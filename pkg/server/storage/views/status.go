package views

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// count gives the status of a workload that several clusters share the counters of one of them, as far as it has reported. The rest of the status
// is of the whole: whether it is available, say. A workload that one cluster has alone is told by its status as it is. Where each cluster holds something of
// its own, it has been observed once the cluster itself has told of it, however others fare.
func count(out projection.Object, breakdown summary.Breakdown, cluster string) {
	told, known := breakdown[cluster]
	viewed := identity.Viewed(out)
	if len(breakdown) < 2 && known && !viewed {
		return
	}
	if !known && len(breakdown) == 0 {
		return
	}
	switch w := out.(type) {
	case *appsv1.Deployment:
		w.Status.Replicas, w.Status.ReadyReplicas = told.Replicas, told.Ready
		w.Status.AvailableReplicas, w.Status.UpdatedReplicas = told.Available, told.Updated
		w.Status.UnavailableReplicas = max(0, wanted(w.Spec.Replicas)-told.Available)
		if viewed {
			w.Status.ObservedGeneration = told.Generation
		}
	case *appsv1.StatefulSet:
		w.Status.Replicas, w.Status.ReadyReplicas = told.Replicas, told.Ready
		w.Status.AvailableReplicas, w.Status.UpdatedReplicas, w.Status.CurrentReplicas = told.Available, told.Updated, told.Replicas
	case *appsv1.ReplicaSet:
		w.Status.Replicas, w.Status.ReadyReplicas, w.Status.AvailableReplicas = told.Replicas, told.Ready, told.Available
	case *corev1.ReplicationController:
		w.Status.Replicas, w.Status.ReadyReplicas, w.Status.AvailableReplicas = told.Replicas, told.Ready, told.Available
	}
}

func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
