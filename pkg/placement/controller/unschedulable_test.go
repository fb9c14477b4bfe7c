package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"golang.org/x/time/rate"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// placedInEast is a Deployment of two replicas, pinned to both clusters, with its ReplicaSet and one of its pods.
func placedInEast(name string) (*appsv1.Deployment, *appsv1.ReplicaSet, *corev1.Pod) {
	d := deployment(name, v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`, v1alpha1.AnnotationClusters, "east,west")
	hash := projection.TemplateHash(&d.Spec.Template)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-" + hash,
		Labels:          map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-1", Annotations: map[string]string{v1alpha1.AnnotationCluster: "east"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}}}
	return d, rs, pod
}

// waitsForNode has a pod wait for longer than is tolerated.
func waitsForNode(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient cpu.", LastTransitionTime: metav1.Time{Time: time.Now().Add(-time.Hour)},
	}}
}

// Whole clusters may turn out to be too small at once.
func TestUnschedulableReplicasMoveAtThePaceOfAFailover(t *testing.T) {
	var objects []runtime.Object
	for _, name := range []string{"first", "second"} {
		d, rs, pod := placedInEast(name)
		other := pod.DeepCopy()
		other.Name = name + "-2"
		waitsForNode(pod)
		waitsForNode(other)
		objects = append(objects, d, rs, pod, other)
	}
	h := start(t, append(objects, joined("east", 9), joined("west", 9))...)
	h.failovers = rate.NewLimiter(rate.Every(time.Hour), 1)
	for _, name := range []string{"first", "second", "second"} {
		if err := h.sync(t.Context(), named(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"first": "west", "second": "east"} {
		d, err := h.kube.AppsV1().Deployments("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		decision, err := placement.ParseDecision(d.Annotations[v1alpha1.AnnotationPlacement])
		if err != nil || !decision.Equal(placement.Decision{want: {Replicas: 2}}) {
			t.Errorf("%s is on %s, %v, want both replicas on %s", name, decision, err, want)
		}
	}
}

// A pod that its cluster has no node for wakes the controller, and after a while its replica goes where there is one.
func TestUnschedulableReplicasMoveAndAreRemembered(t *testing.T) {
	d, rs, pod := placedInEast("web")
	other := pod.DeepCopy()
	other.Name = "web-2"
	h := start(t, joined("east", 9), joined("west", 5), d, rs, pod, other)
	h.run(t)
	pod = pod.DeepCopy()
	waitsForNode(pod)
	if _, err := h.kube.CoreV1().Pods("shop").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var annotation string
	err := wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := h.kube.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		annotation = got.Annotations[v1alpha1.AnnotationPlacement]
		decision, err := placement.ParseDecision(annotation)
		return decision.Equal(placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}}), err
	})
	if err != nil {
		t.Fatalf("the decision is %s: %v", annotation, err)
	}
	failures, err := placement.ParseFailures(annotation)
	if err != nil || failures["east"].Times != 1 || !failures["east"].Until.After(time.Now()) {
		t.Errorf("failures %v, %v, want one of east that counts still", failures, err)
	}
	var said []string
	err = wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		said = append(said, h.events()...)
		return slices.ContainsFunc(said, func(e string) bool {
			return strings.Contains(e, `moved off cluster "east", which has no node for some of the pods (0/3 nodes are available: 3 Insufficient cpu)`)
		}), nil
	})
	if err != nil {
		t.Errorf("events %q, want one that says why: %v", said, err)
	}
}

// A bare pod that waits in a cluster without a node for it is placed anew, and stays where it runs if its cluster was faster.
func TestABarePodThatWaitsIsPlacedAnew(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "task", UID: "task", Annotations: map[string]string{
		v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`, v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east",
	}}}
	pod.Status.Phase = corev1.PodPending
	h := start(t, joined("east", 9), joined("west", 5), pod)
	h.run(t)
	awaitOn := func(cluster string) {
		t.Helper()
		var annotation string
		err := wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			got, err := h.kube.CoreV1().Pods("shop").Get(ctx, "task", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			pod, annotation = got, got.Annotations[v1alpha1.AnnotationPlacement]
			decision, err := placement.ParseDecision(annotation)
			return decision.Equal(placement.Decision{cluster: {Replicas: 1}}), err
		})
		if err != nil {
			t.Fatalf("the decision is %s, want %s: %v", annotation, cluster, err)
		}
	}
	waitsForNode(pod)
	if _, err := h.kube.CoreV1().Pods("shop").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOn("west")
	pod = pod.DeepCopy()
	pod.Spec.NodeName, pod.Status = "east", corev1.PodStatus{Phase: corev1.PodRunning}
	delete(pod.Annotations, v1alpha1.AnnotationPodCluster)
	if _, err := h.kube.CoreV1().Pods("shop").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOn("east")
}

// A refusal that a status tells of wakes the controller.
func TestReplicasThatAreRefusedMove(t *testing.T) {
	d, rs, pod := placedInEast("web")
	h := start(t, joined("east", 9), joined("west", 5), d, rs, pod)
	h.run(t)
	d = d.DeepCopy()
	d.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"replicas":1,"refused":{"pods":1,"since":"2026-05-01T12:00:00Z","says":"exceeded quota"}}}`
	if _, err := h.kube.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := h.kube.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		decision, err := placement.ParseDecision(got.Annotations[v1alpha1.AnnotationPlacement])
		return decision.Equal(placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}}), err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMakerOf(t *testing.T) {
	d := deployment("web")
	mirror := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
	own := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
	h := start(t, d, mirror, own)
	of := func(owner metav1.Object, kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string // resource and name
	}{
		"that of a Deployment's ReplicaSet is the Deployment": {pod: of(mirror, "ReplicaSet"), want: "deployments web"},
		"that of a bare ReplicaSet is the ReplicaSet":         {pod: of(own, "ReplicaSet"), want: "replicasets own"},
		"a kind that is no workload makes none":               {pod: of(own, "Widget")},
		"a bare pod has none":                                 {pod: &corev1.Pod{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := h.makerOf(test.pod)
			if text := strings.TrimSpace(got.resource.Resource + " " + got.Name); text != test.want || known != (test.want != "") {
				t.Errorf("got %q, %t, want %q", text, known, test.want)
			}
		})
	}
}
