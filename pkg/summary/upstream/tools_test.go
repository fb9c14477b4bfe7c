//go:build !race

// Package upstream shows summaries to the tools that read them, and compares them with the Kubernetes code that they stand in for. It is
// a package of its own so that the pure one stays quick to build with the race detector.
package upstream

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// web is a Deployment at generation 2, of which generation seen was observed.
func web(replicas int32, seen int64) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2},
		Spec: appsv1.DeploymentSpec{
			Replicas:                ptr.To(replicas),
			ProgressDeadlineSeconds: ptr.To[int32](600),
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromString("25%")),
				},
			},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: seen},
	}
}

func share(replicas int32) placement.Share { return placement.Share{Replicas: replicas} }

// report is what a cluster says of a generation, with the reason of its Progressing condition.
func report(generation int64, replicas, updated, available int32, reason string) summary.Report {
	status := corev1.ConditionTrue
	if reason == "ProgressDeadlineExceeded" {
		status = corev1.ConditionFalse
	}
	return summary.Report{Generation: generation, Live: &appsv1.Deployment{Status: appsv1.DeploymentStatus{
		Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: available, AvailableReplicas: available,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "stuck"}},
	}}}
}

func done(replicas int32) summary.Report {
	return report(2, replicas, replicas, replicas, "NewReplicaSetAvailable")
}

func silent(in summary.Report) summary.Report {
	in.Stale = true
	return in
}

func TestWhatToolsRead(t *testing.T) {
	const (
		rolledOut = "successfully rolled out"
		unseen    = "Waiting for deployment spec update to be observed"
	)
	onBoth := placement.Decision{"east": share(3), "west": share(2)}
	tests := map[string]struct {
		in       *appsv1.Deployment
		decision placement.Decision
		reports  map[string]summary.Report
		unplaced string
		// rollout is part of what "kubectl rollout status" says, or of its error.
		rollout    string
		wantDone   bool
		wantFailed bool
		kstatus    kstatus.Status
	}{
		"all shares have rolled out": {
			in: web(5, 1), decision: onBoth, reports: map[string]summary.Report{"east": done(3), "west": done(2)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"one cluster is on an older generation, on which it looks complete": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(1, 2, 2, 2, "NewReplicaSetAvailable")},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"a new Deployment on which no cluster has reported": {
			in: web(5, 0), decision: onBoth, rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"one cluster fell silent before it confirmed": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": silent(report(1, 2, 2, 2, "NewReplicaSetAvailable"))},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"one cluster fell silent after the rollout": {
			in: web(5, 2), decision: onBoth, reports: map[string]summary.Report{"east": done(3), "west": silent(done(2))},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"one cluster is in the middle of it": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(2, 3, 1, 2, "ReplicaSetUpdated")},
			rollout: "4 out of 5 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
		"old pods remain in one cluster": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(2, 3, 2, 2, "ReplicaSetUpdated")},
			rollout: "1 old replicas are pending termination", kstatus: kstatus.InProgressStatus,
		},
		"pods are not available in one cluster": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(2, 2, 2, 1, "ReplicaSetUpdated")},
			rollout: "4 of 5 updated replicas are available", kstatus: kstatus.InProgressStatus,
		},
		"one cluster passed the deadline": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(2, 2, 1, 1, "ProgressDeadlineExceeded")},
			rollout: "exceeded its progress deadline", wantFailed: true, kstatus: kstatus.FailedStatus,
		},
		"one cluster passed the deadline of the generation before": {
			in: web(5, 1), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(1, 2, 1, 1, "ProgressDeadlineExceeded")},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"a cluster that left still runs what it had": {
			in: web(3, 2), decision: placement.Decision{"east": share(3)},
			reports: map[string]summary.Report{"east": done(3), "west": done(3)},
			rollout: "3 old replicas are pending termination", kstatus: kstatus.InProgressStatus,
		},
		"all is to move, and nothing has moved yet": {
			in: web(3, 2), decision: placement.Decision{"east": share(3)}, reports: map[string]summary.Report{"west": done(3)},
			rollout: "0 out of 3 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
		"a cluster that was added still carries out something old": {
			in: web(5, 2), decision: onBoth,
			reports: map[string]summary.Report{"east": done(3), "west": report(1, 2, 2, 2, "NewReplicaSetAvailable")},
			rollout: "3 out of 5 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
		"one cluster cannot hold it": {
			in: web(5, 1), decision: onBoth, reports: map[string]summary.Report{"east": done(3), "west": {Problem: "the name is taken"}},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"unplaced": {
			in: web(3, 0), unplaced: "0/2 clusters can run it",
			rollout: "0 out of 3 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
		"unplaced by now, but still running where it was": {
			in: web(3, 2), unplaced: "0/2 clusters can run it", reports: map[string]summary.Report{"east": done(3)},
			rollout: "0 out of 3 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
		"scaled to zero": {
			in: web(0, 1), decision: placement.Decision{"east": share(0), "west": share(0)},
			reports: map[string]summary.Report{"east": done(0), "west": done(0)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"scaled to zero, with pods left": {
			in: web(0, 1), decision: placement.Decision{"east": share(0)},
			reports: map[string]summary.Report{"east": report(2, 1, 0, 0, "ReplicaSetUpdated")},
			rollout: "1 old replicas are pending termination", kstatus: kstatus.InProgressStatus,
		},
		"the whole in each of two clusters": {
			in: web(3, 1), decision: placement.Decision{"east": share(3), "west": share(3)},
			reports: map[string]summary.Report{"east": done(3), "west": done(3)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"the whole in one of two clusters": {
			in: web(3, 1), decision: placement.Decision{"east": share(3), "west": share(3)},
			reports: map[string]summary.Report{"east": done(3), "west": report(2, 3, 3, 2, "ReplicaSetUpdated")},
			rollout: "2 of 3 updated replicas are available", kstatus: kstatus.InProgressStatus,
		},
		"fewer are placed than asked for": {
			in: web(8, 1), decision: placement.Decision{"east": share(3)}, reports: map[string]summary.Report{"east": done(3)},
			rollout: "3 out of 8 new replicas have been updated", kstatus: kstatus.InProgressStatus,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.in.Status = summary.Deployment(test.in, summary.Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: metav1.Now()})
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.in)
			if err != nil {
				t.Fatal(err)
			}
			shown := &unstructured.Unstructured{Object: content}

			said, isDone, err := (&polymorphichelpers.DeploymentStatusViewer{}).Status(shown, 0)
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, test.rollout) || isDone != test.wantDone || (err != nil) != test.wantFailed {
				t.Errorf("rollout status says %q, done %t, want %q, done %t", said, isDone, test.rollout, test.wantDone)
			}
			result, err := kstatus.Compute(shown)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != test.kstatus {
				t.Errorf("kstatus = %s (%s), want %s", result.Status, result.Message, test.kstatus)
			}
		})
	}
}
