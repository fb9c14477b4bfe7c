package measure

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// restarts counts how often containers have restarted in pods that the release has made: those of the variant that it brings, if they are no
// older than it is.
func (m *Measurer) restarts(l look) (found, error) {
	pods, err := m.Pods.Pods(l.app.Namespace).List(labels.Everything())
	if err != nil {
		return found{}, err
	}
	variant, n := l.released(), 0
	for _, pod := range pods {
		if pod.CreationTimestamp.Before(l.release.Status.StartTime) {
			continue
		}
		of, err := m.variantOf(l, pod)
		if err != nil {
			return found{}, fmt.Errorf("find what pod %s/%s belongs to: %w", pod.Namespace, pod.Name, err)
		}
		if of == variant {
			n += restartsOf(pod)
		}
	}
	return found{values: []float64{float64(n)}}, nil
}

func restartsOf(pod *corev1.Pod) (n int) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			n += int(status.RestartCount)
		}
	}
	return n
}

// variantOf is the variant of the application that a pod belongs to by its owners, "" if it is not one of the application's.
func (m *Measurer) variantOf(l look, pod *corev1.Pod) (string, error) {
	workload, err := m.workloadOf(pod)
	if apierrors.IsNotFound(err) {
		return "", nil // it goes with what it belonged to
	}
	if err != nil || workload == nil || workload.GetLabels()[v1alpha1.LabelApplication] != l.app.Name {
		return "", err
	}
	label := l.app.Spec.VariantLabel
	switch workload.GetLabels()[label.Key] {
	case label.CanaryValue:
		return delivery.Canary, nil
	case label.BaselineValue:
		return delivery.Baseline, nil
	}
	return delivery.Primary, nil
}

// workloadOf is the Deployment or StatefulSet that a pod is of, nil if there is none.
func (m *Measurer) workloadOf(pod *corev1.Pod) (metav1.Object, error) {
	owner := metav1.GetControllerOf(pod)
	if !isApps(owner, "ReplicaSet") {
		if !isApps(owner, "StatefulSet") {
			return nil, nil
		}
		set, err := m.StatefulSets.StatefulSets(pod.Namespace).Get(owner.Name)
		return same(set, owner, err)
	}
	set, err := m.ReplicaSets.ReplicaSets(pod.Namespace).Get(owner.Name)
	if of, err := same(set, owner, err); of == nil || err != nil {
		return nil, err
	}
	if owner = metav1.GetControllerOf(set); !isApps(owner, "Deployment") {
		return nil, nil
	}
	deployment, err := m.Deployments.Deployments(pod.Namespace).Get(owner.Name)
	return same(deployment, owner, err)
}

func isApps(owner *metav1.OwnerReference, kind string) bool {
	return owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Kind == kind
}

// same returns an object if it is the owner that is meant, and not another one that has its name now.
func same(object metav1.Object, owner *metav1.OwnerReference, err error) (metav1.Object, error) {
	if err != nil || object.GetUID() != owner.UID {
		return nil, err
	}
	return object, nil
}
