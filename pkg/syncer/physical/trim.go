package physical

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// TrimPod keeps of other people's pods only what capacity counts. They are most of a cluster.
func (c *Cluster) TrimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	if c.Ours(pod.Namespace) {
		return TrimManagedFields(pod)
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			Containers: resourcesOnly(pod.Spec.Containers), InitContainers: resourcesOnly(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:              pod.Status.Phase,
			Resources:          pod.Status.Resources,
			AllocatedResources: pod.Status.AllocatedResources,
			ContainerStatuses:  grantedOnly(pod.Status.ContainerStatuses), InitContainerStatuses: grantedOnly(pod.Status.InitContainerStatuses),
		},
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodResizePending {
			trimmed.Status.Conditions = []corev1.PodCondition{condition}
		}
	}
	return trimmed, nil
}

func resourcesOnly(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i, c := range containers {
		out[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

// grantedOnly keeps what a resize in place has been granted.
func grantedOnly(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range statuses {
		if s.Resources != nil || s.AllocatedResources != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

// TrimManagedFields drops the fields themselves and keeps who manages some: that we did is what an upgrade to apply asks for.
func TrimManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata and needs no trimming
	}
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range accessor.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource})
		}
	}
	accessor.SetManagedFields(kept)
	return obj, nil
}

// TrimRevision keeps of a revision what tells which upstream template it carries out. The template itself is in the logical cluster.
func TrimRevision(obj any) (any, error) {
	revision, ok := obj.(*appsv1.ControllerRevision)
	if !ok {
		return obj, nil
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: revision.Namespace, Name: revision.Name, UID: revision.UID, ResourceVersion: revision.ResourceVersion,
			OwnerReferences: revision.OwnerReferences,
			Labels: map[string]string{
				appsv1.ControllerRevisionHashLabelKey: revision.Labels[appsv1.ControllerRevisionHashLabelKey],
			},
			Annotations: map[string]string{v1alpha1.AnnotationTemplate: revision.Annotations[v1alpha1.AnnotationTemplate]},
		},
	}, nil
}
