//go:build !race

package upstream

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// agents is a DaemonSet at generation 2, of which generation seen was observed.
func agents(seen int64) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", Generation: 2},
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: seen},
	}
}

// onNodes is what a cluster says of a generation.
func onNodes(generation int64, desired, updated, available int32) summary.Report {
	return summary.Report{Generation: generation, Live: &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{
		DesiredNumberScheduled: desired, CurrentNumberScheduled: desired, UpdatedNumberScheduled: updated,
		NumberReady: available, NumberAvailable: available, NumberUnavailable: desired - available,
	}}}
}

func TestWhatToolsReadOfADaemonSet(t *testing.T) {
	const rolledOut, unseen = "successfully rolled out", "Waiting for daemon set spec update to be observed"
	onBoth := placement.Decision{"east": share(0), "west": share(0)}
	for name, test := range map[string]struct {
		in       *appsv1.DaemonSet
		decision placement.Decision
		reports  map[string]summary.Report
		unplaced string
		rollout  string
		wantDone bool
		kstatus  kstatus.Status
	}{
		"every node of every cluster has it": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 2, 2)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"no node wants it": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 0, 0, 0), "west": onNodes(2, 0, 0, 0)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"no cluster has reported": {
			in: agents(0), decision: onBoth, rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"one cluster of a new one has reported": {
			in: agents(0), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3)},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"a cluster that was added has not reported": {
			in: agents(2), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3)},
			rollout: "3 out of 4 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
		"a cluster that was added has not looked at its nodes": {
			in: agents(2), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(0, 0, 0, 0)},
			rollout: "3 out of 4 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
		"one cluster is on an older generation": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(1, 2, 2, 2)},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"one cluster is in the middle of it": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 1, 1)},
			rollout: "4 out of 5 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
		"a pod is not available": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 2, 1)},
			rollout: "4 of 5 updated pods are available", kstatus: kstatus.InProgressStatus,
		},
		"one cluster fell silent after the rollout": {
			in: agents(2), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": silent(onNodes(2, 2, 2, 2))},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"one cluster fell silent before it confirmed": {
			in: agents(1), decision: onBoth, reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": silent(onNodes(1, 2, 2, 2))},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"a cluster that left still runs its pods": {
			in: agents(2), decision: placement.Decision{"east": share(0)},
			reports: map[string]summary.Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 2, 2)},
			rollout: rolledOut, wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"unplaced": {
			in: agents(0), unplaced: "0/2 clusters can run it",
			rollout: "0 out of 1 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Status = summary.DaemonSet(test.in,
				summary.Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: metav1.Now()})
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.in)
			if err != nil {
				t.Fatal(err)
			}
			shown := &unstructured.Unstructured{Object: content}
			said, done, err := (&polymorphichelpers.DaemonSetStatusViewer{}).Status(shown, 0)
			if err != nil || !strings.Contains(said, test.rollout) || done != test.wantDone {
				t.Errorf("rollout status says %q, done %t, %v; want %q, done %t", said, done, err, test.rollout, test.wantDone)
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
