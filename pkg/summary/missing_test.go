package summary

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestWhatIsMissing(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 5, 1, 14, 0, 0, 0, time.FixedZone("CEST", 7200)))
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rollout := func(replicas int32, reason string) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.DeploymentStatus{
			Replicas: replicas, Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "no", LastTransitionTime: since,
			}},
		}}
	}
	job := func(parallelism int32, completions *int32, status batchv1.JobStatus) *batchv1.Job {
		return &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: completions}, Status: status}
	}
	suspended := job(3, nil, batchv1.JobStatus{})
	suspended.Spec.Suspend = ptr.To(true)
	for name, test := range map[string]struct {
		live Object
		want placement.Refusal
	}{
		"pods of a Deployment that could not be made": {rollout(1, "FailedCreate"), placement.Refusal{Pods: 2, Since: at, Says: "no"}},
		"pods that could not be deleted":              {rollout(1, "FailedDelete"), placement.Refusal{Pods: 2}},
		"a surge that could not be made":              {rollout(3, "FailedCreate"), placement.Refusal{}},
		"pods of a ReplicaSet": {&appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "no", LastTransitionTime: since,
		}}}}, placement.Refusal{Pods: 1, Since: at, Says: "no"}},
		"pods of a ReplicationController": {&corev1.ReplicationController{Status: corev1.ReplicationControllerStatus{Conditions: []corev1.ReplicationControllerCondition{{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "no", LastTransitionTime: since,
		}}}}, placement.Refusal{Pods: 1, Since: at, Says: "no"}},
		"those of a StatefulSet, which does not say why": {
			&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{Replicas: 2}}, placement.Refusal{Pods: 1},
		},
		"those that a Job runs at a time":       {job(3, nil, batchv1.JobStatus{Active: 1}), placement.Refusal{Pods: 2}},
		"no more than are left to complete":     {job(3, ptr.To[int32](5), batchv1.JobStatus{Succeeded: 4}), placement.Refusal{Pods: 1}},
		"none of those that end":                {job(3, nil, batchv1.JobStatus{Active: 2, Terminating: ptr.To[int32](1)}), placement.Refusal{}},
		"none of a Job that is suspended":       {suspended, placement.Refusal{}},
		"none of a DaemonSet: nobody counts it": {&appsv1.DaemonSet{}, placement.Refusal{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range Kinds() {
				if kind.Breakdown && reflect.TypeOf(kind.restore(ClusterStatus{})) == reflect.TypeOf(test.live) {
					if got := kind.Missing(test.live); got != test.want {
						t.Errorf("got %+v, want %+v", got, test.want)
					}
					return
				}
			}
			t.Fatalf("no kind for %T", test.live)
		})
	}
}

func TestTheBreakdownTellsOfRefusals(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	want := placement.Refusal{Pods: 2, Since: at, Says: "no"}
	text := deploymentKind.build().BreakdownOf(map[string]Report{"east": {Refused: &want}, "west": {}}).String()
	if got := placement.ParseRefusals(text); len(got) != 1 || got["east"] != want {
		t.Errorf("of %s placement reads %+v", text, got)
	}
}
