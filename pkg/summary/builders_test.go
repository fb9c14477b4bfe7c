package summary

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

var (
	longAgo = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(time.Date(2026, 2, 2, 0, 0, 0, 0, time.UTC))
)

// web is a Deployment of so many replicas with the API's defaults, at generation 2, of which generation 1 was observed.
func web(replicas int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	in := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 2},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromString("25%")),
				},
			},
			ProgressDeadlineSeconds: ptr.To[int32](600),
			RevisionHistoryLimit:    ptr.To[int32](10),
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:                templateOf("web:1"),
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1},
	}
	for _, edit := range edits {
		edit(in)
	}
	return in
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func paused(in *appsv1.Deployment)     { in.Spec.Paused = true }
func noDeadline(in *appsv1.Deployment) { in.Spec.ProgressDeadlineSeconds = nil }
func observed(in *appsv1.Deployment)   { in.Status.ObservedGeneration = in.Generation }

// shares makes a decision of a list of replicas for east, west and north.
func shares(replicas ...int32) placement.Decision {
	out := placement.Decision{}
	for i, n := range replicas {
		out[[]string{"east", "west", "north"}[i]] = placement.Share{Replicas: n}
	}
	return out
}

// done is the report of a cluster that has rolled out generation 2 with so many replicas.
func done(replicas int32) Report { return progress(replicas, replicas, replicas, reasonComplete) }

// progress is the report of a cluster on generation 2 in the middle of something.
func progress(replicas, updated, available int32, reason string) Report {
	status := corev1.ConditionTrue
	if reason == reasonTimedOut || reason == "ReplicaSetCreateError" {
		status = corev1.ConditionFalse
	}
	return Report{Generation: 2, Live: &appsv1.Deployment{Status: appsv1.DeploymentStatus{
		ObservedGeneration: 17, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: available, AvailableReplicas: available,
		UnavailableReplicas: max(0, replicas-available),
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "said below",
		}},
	}}}
}

// and changes a report.
func and(in Report, edits ...func(*Report)) Report {
	if in.Live != nil {
		in.Live = in.Live.DeepCopyObject().(Object)
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func unproxied(replicas int32) func(*Report) {
	return func(in *Report) { in.Unproxied = replicas }
}

func silent(in *Report)   { in.Stale = true }
func older(in *Report)    { in.Generation = 1 }
func conflict(in *Report) { in.Generation, in.Problem, in.Live = 0, "the name is taken", nil }
func quota(in *Report) {
	status := statusOf(*in)
	status.Conditions = append(status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota",
	})
}
