package summary

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// reasonFailedCreate is that of ReplicaFailure, and of events, about pods that a controller could not make.
const reasonFailedCreate = "FailedCreate"

// lacks is what is missing where so many pods of those wanted are there.
func lacks(wanted, have int32) placement.Refusal {
	return placement.Refusal{Pods: max(0, wanted-have)}
}

// because adds why, if that is about pods that could not be made.
func because(missing placement.Refusal, reason, message string, since metav1.Time) placement.Refusal {
	if missing.Pods > 0 && reason == reasonFailedCreate {
		missing.Since, missing.Says = since.UTC(), message
	}
	return missing
}

func deploymentMissing(live *appsv1.Deployment) placement.Refusal {
	out := lacks(ptr.Deref(live.Spec.Replicas, 1), live.Status.Replicas)
	for _, c := range live.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return because(out, c.Reason, c.Message, c.LastTransitionTime)
		}
	}
	return out
}

func replicaSetMissing(live *appsv1.ReplicaSet) placement.Refusal {
	out := lacks(ptr.Deref(live.Spec.Replicas, 1), live.Status.Replicas)
	for _, c := range live.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return because(out, c.Reason, c.Message, c.LastTransitionTime)
		}
	}
	return out
}

func replicationControllerMissing(live *corev1.ReplicationController) placement.Refusal {
	out := lacks(ptr.Deref(live.Spec.Replicas, 1), live.Status.Replicas)
	for _, c := range live.Status.Conditions {
		if c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue {
			return because(out, c.Reason, c.Message, c.LastTransitionTime)
		}
	}
	return out
}

func statefulSetMissing(live *appsv1.StatefulSet) placement.Refusal {
	return lacks(ptr.Deref(live.Spec.Replicas, 1), live.Status.Replicas)
}

// jobMissing counts those that a Job runs at a time.
func jobMissing(live *batchv1.Job) placement.Refusal {
	if ptr.Deref(live.Spec.Suspend, false) || jobEnd(&live.Status) != "" {
		return placement.Refusal{}
	}
	wanted := ptr.Deref(live.Spec.Parallelism, 1)
	if live.Spec.Completions != nil {
		wanted = min(wanted, *live.Spec.Completions-live.Status.Succeeded)
	}
	return lacks(wanted, live.Status.Active+ptr.Deref(live.Status.Terminating, 0))
}
