//go:build !race

package upstream

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var statefulSetGVK = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// db is a StatefulSet at generation 2, of which generation 1, with another image, was observed. A negative partition is none.
func db(replicas, partition int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-of-db", Generation: 2},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: "db-" + hashOf("db:1"), UpdateRevision: "db-" + hashOf("db:1")},
	}
	if partition >= 0 {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(partition)}
	}
	set.Spec.Template = template("db:2")
	return set
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: image}}},
	}
}

func hashOf(image string) string {
	in := template(image)
	return projection.TemplateHash(&in)
}

// dbReport is what a cluster says whose controller has seen the generation: so many pods of the old image and of the new one.
func dbReport(generation int64, old, updated, ready int32) summary.Report {
	set := &appsv1.StatefulSet{}
	set.Annotations = map[string]string{v1alpha1.AnnotationTemplate: hashOf("db:2")}
	set.Status = appsv1.StatefulSetStatus{
		Replicas: old + updated, ReadyReplicas: ready, AvailableReplicas: ready,
		CurrentReplicas: old, CurrentRevision: "old", UpdatedReplicas: updated, UpdateRevision: "new",
	}
	if generation == 1 { // it has only heard of the old image
		set.Annotations[v1alpha1.AnnotationTemplate] = hashOf("db:1")
		set.Status.UpdateRevision, set.Status.UpdatedReplicas = "old", old
	}
	return summary.Report{Generation: generation, Live: set, Revisions: map[string]string{"old": hashOf("db:1"), "new": hashOf("db:2")}}
}

func TestWhatToolsReadOfStatefulSets(t *testing.T) {
	const unseen = "Waiting for statefulset spec update to be observed"
	onBoth := placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 2, Start: 3}}
	for name, test := range map[string]struct {
		in       *appsv1.StatefulSet
		decision placement.Decision
		reports  map[string]summary.Report
		unplaced string
		// rollout is part of what "kubectl rollout status" says.
		rollout  string
		wantDone bool
		kstatus  kstatus.Status
	}{
		"both parts have rolled out": {
			in: db(5, -1), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 0, 3, 3), "west": dbReport(2, 0, 2, 2)},
			rollout: "rolling update complete 5 pods", wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"both parts have rolled out, with the default partition": {
			in: db(5, 0), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 0, 3, 3), "west": dbReport(2, 0, 2, 2)},
			rollout: "roll out complete: 5 new pods", wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"one part has rolled out": {
			in: db(5, -1), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 3, 0, 3), "west": dbReport(2, 0, 2, 2)},
			rollout: "waiting for statefulset rolling update to complete 2 pods", kstatus: kstatus.InProgressStatus,
		},
		"one part has rolled out, with the default partition": {
			in: db(5, 0), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 3, 0, 3), "west": dbReport(2, 0, 2, 2)},
			rollout: "2 out of 5 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
		"all that a partition lets": {
			in: db(5, 3), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 3, 0, 3), "west": dbReport(2, 0, 2, 2)},
			rollout: "roll out complete: 2 new pods", wantDone: true, kstatus: kstatus.CurrentStatus,
		},
		"one cluster has not heard of it": {
			in: db(5, 0), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 0, 3, 3), "west": dbReport(1, 2, 0, 2)},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"one cluster is silent": {
			in: db(5, 0), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 0, 3, 3), "west": silent(dbReport(1, 2, 0, 2))},
			rollout: unseen, kstatus: kstatus.InProgressStatus,
		},
		"a pod is not ready": {
			in: db(5, 0), decision: onBoth, reports: map[string]summary.Report{"east": dbReport(2, 0, 3, 3), "west": dbReport(2, 0, 2, 1)},
			rollout: "Waiting for 1 pods to be ready", kstatus: kstatus.InProgressStatus,
		},
		"everything is still where it should leave": {
			in: db(2, 0), decision: placement.Decision{"east": {Replicas: 2}},
			reports: map[string]summary.Report{"east": dbReport(2, 0, 0, 0), "west": dbReport(2, 0, 2, 2)},
			rollout: "0 out of 2 new pods have been updated", kstatus: kstatus.InProgressStatus,
		},
		"unplaced": {
			in: db(2, 0), unplaced: "no cluster has room", rollout: "Waiting for 2 pods to be ready", kstatus: kstatus.InProgressStatus,
		},
		"scaled to nothing": {
			in: db(0, 0), decision: placement.Decision{"east": {}}, reports: map[string]summary.Report{"east": dbReport(2, 0, 0, 0)},
			rollout: "roll out complete: 0 new pods", wantDone: true, kstatus: kstatus.CurrentStatus,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Status = summary.StatefulSet(test.in, summary.Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced})
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.in)
			if err != nil {
				t.Fatal(err)
			}
			shown := &unstructured.Unstructured{Object: content}
			said, isDone, err := (&polymorphichelpers.StatefulSetStatusViewer{}).Status(shown, 0)
			if err != nil || !strings.Contains(said, test.rollout) || isDone != test.wantDone {
				t.Errorf("rollout status says %q, done %t, %v; want %q, done %t", said, isDone, err, test.rollout, test.wantDone)
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

// TestKubectlReadsHistories goes back and forth as people do, with kubectl's own code.
func TestKubectlReadsHistories(t *testing.T) {
	kind, _ := summary.ForResource(appsv1.SchemeGroupVersion.WithResource("statefulsets"))
	set := db(1, -1)
	var history []*appsv1.ControllerRevision
	for _, image := range []string{"db:1", "db:2"} {
		set.Spec.Template = template(image)
		plan, err := kind.PlanHistory(set, statefulSetGVK, history, nil)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, plan.Write)
	}
	client := fake.NewClientset(set, history[0], history[1])
	viewer, err := polymorphichelpers.HistoryViewerFor(statefulSetGVK.GroupKind(), client)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := viewer.ViewHistory("shop", "db", 1); err != nil || !strings.Contains(said, "db:1") {
		t.Errorf("revision 1 reads %q, %v; want its image", said, err)
	}
	rollbacker, err := polymorphichelpers.RollbackerFor(statefulSetGVK.GroupKind(), client)
	if err != nil {
		t.Fatal(err)
	}
	// kubectl compares bytes to see whether there is anything to do.
	if said, err := rollbacker.Rollback(set, nil, 2, cmdutil.DryRunNone); err != nil || !strings.Contains(said, "already matches revision 2") {
		t.Errorf("a rollback to the template in use says %q, %v; want it skipped", said, err)
	}
	if said, err := rollbacker.Rollback(set, nil, 0, cmdutil.DryRunNone); err != nil || said != "rolled back" {
		t.Errorf("a rollback says %q, %v", said, err)
	}
	after, err := client.AppsV1().StatefulSets("shop").Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Spec.Template.Spec.Containers[0].Image; got != "db:1" {
		t.Errorf("the image is %s after the rollback, want db:1", got)
	}
	plan, err := kind.PlanHistory(after, statefulSetGVK, history, nil)
	if err != nil || plan.Write == nil || plan.Write.Name != history[0].Name || plan.Write.Revision != 3 {
		t.Errorf("what was revision 1 becomes %+v, %v; want number 3", plan.Write, err)
	}
}
