package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

func TestAClusterIsEmptiedBeforeItIsRemoved(t *testing.T) {
	const stuck = "1 cannot move: Deployment shop/web: there is not enough room elsewhere"
	own := corev1.Taint{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	drained := corev1.Taint{Key: manifoldv1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute}
	says := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: manifoldv1alpha1.ClusterDrained, Status: status, Reason: reason, Message: message}
	}
	for name, test := range map[string]struct {
		taints    []corev1.Taint
		condition metav1.Condition
		timeout   time.Duration
		problem   []string // of the refusal; none if the cluster may go
		draining  bool     // whether it is drained from then on
	}{
		"one that is empty may go": {taints: []corev1.Taint{own}, condition: says("True", "Drained", "no workload is left"), timeout: time.Hour, draining: true},
		"one whose workloads have nowhere to go is as before": {
			taints: []corev1.Taint{own}, condition: says("False", "Stuck", stuck), timeout: time.Hour,
			problem: []string{`cluster "east" is not removed`, "it is as before", stuck, "--orphan", "--force"},
		},
		"one that was being drained is drained on": {
			taints: []corev1.Taint{own, drained}, condition: says("False", "Stuck", stuck), timeout: time.Hour,
			problem: []string{"is not removed", "its drain continues", stuck}, draining: true,
		},
		"one that takes its time is drained on": {
			taints: []corev1.Taint{own}, condition: says("False", "Draining", "1 moving: Deployment shop/web"), timeout: 2 * time.Second,
			problem: []string{"is not removed", "is not empty after 2s", "the drain continues", "1 moving"}, draining: true,
		},
		"Jobs that will end are waited for": {
			condition: says("False", "Waiting", "1 finishing there: Job shop/sums"), timeout: 2 * time.Second,
			problem: []string{"is not empty after 2s", "1 finishing there"}, draining: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			cluster := withCondition(named("east", "1"), test.condition)
			cluster.Spec.Taints = test.taints
			cluster.Spec.Unschedulable = len(undrained(test.taints)) < len(test.taints)
			client := fake.NewSimpleClientset(cluster)
			l := &logical{clusters: client.ManifoldV1alpha1().Clusters(), manifold: client}
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			o := &RemoveOptions{IOStreams: streams, asAdmin: asAdmin{subject: subject{Name: "east"}}, Timeout: test.timeout, patience: 10 * time.Millisecond}
			err := o.empty(t.Context(), l, cluster)
			if (err != nil) != (len(test.problem) > 0) {
				t.Fatalf("error %v, want one with %q", err, test.problem)
			}
			for _, want := range test.problem {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want one with %q", err, want)
				}
			}
			after, err := l.clusters.Get(t.Context(), "east", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if draining := len(undrained(after.Spec.Taints)) < len(after.Spec.Taints); draining != test.draining || after.Spec.Unschedulable != test.draining {
				t.Errorf("taints %v, unschedulable %t; want it drained: %t", after.Spec.Taints, after.Spec.Unschedulable, test.draining)
			}
			if len(undrained(after.Spec.Taints)) != len(undrained(test.taints)) {
				t.Errorf("taints %v, want those of others as they were", after.Spec.Taints)
			}
		})
	}
}

func TestADrainEndsWhenThereIsNothingToWaitFor(t *testing.T) {
	const stuck = `1 cannot move: Deployment shop/web: pinned to "east" by annotation manifold.dev/clusters: unpin it or pin it elsewhere`
	for name, test := range map[string]struct {
		status          metav1.ConditionStatus
		reason, message string
		behind          bool // the condition is about an earlier generation
		timeout         time.Duration
		problem         []string
	}{
		"it is empty": {status: "True", reason: "Drained", message: "no workload is left", timeout: time.Hour},
		"nothing that is left can move": {
			status: "False", reason: "Stuck", message: stuck, timeout: time.Hour,
			problem: []string{`cluster "east" cannot be emptied`, stuck, "manifold cluster uncordon east"},
		},
		"what was said before the drain began does not count": {
			status: "False", reason: "Stuck", message: stuck, behind: true, timeout: time.Second,
			problem: []string{`cluster "east" is not empty after 1s`, "it is not known yet what is left there"},
		},
		"what moves is waited for": {
			status: "False", reason: "Draining", message: "1 moving: Deployment shop/web", timeout: time.Second,
			problem: []string{`cluster "east" is not empty after 1s`, "1 moving"},
		},
		"and so are Jobs that will end": {
			status: "False", reason: "Waiting", message: "1 finishing there: Job shop/sums", timeout: time.Second,
			problem: []string{`cluster "east" is not empty after 1s`, "1 finishing there"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			cluster := withCondition(named("east", "1"), metav1.Condition{
				Type: manifoldv1alpha1.ClusterDrained, Status: test.status, Reason: test.reason, Message: test.message, ObservedGeneration: 1,
			})
			cluster.Generation = 1
			if test.behind {
				cluster.Generation = 2
			}
			cluster.Spec.Unschedulable = true
			cluster.Spec.Taints = []corev1.Taint{{Key: manifoldv1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
			client := fake.NewSimpleClientset(cluster)
			l := &logical{clusters: client.ManifoldV1alpha1().Clusters(), manifold: client}
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &DrainOptions{IOStreams: streams, subject: subject{Name: "east"}, Timeout: test.timeout, patience: 10 * time.Millisecond}
			err := o.awaitEmpty(t.Context(), l, cluster)
			if (err != nil) != (len(test.problem) > 0) {
				t.Fatalf("error %v, want one with %q", err, test.problem)
			}
			for _, want := range test.problem {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want one with %q", err, want)
				}
			}
			if said := strings.Contains(out.String(), "cluster/east drained"); said != (len(test.problem) == 0) {
				t.Errorf("printed %q", out)
			}
		})
	}
}
