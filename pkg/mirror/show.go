package mirror

import (
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ShowPod returns what the logical cluster shows of a pod of a cluster: under these owners, with the labels by which they tell their pods apart.
func ShowPod(pod *corev1.Pod, cluster string, owners []metav1.OwnerReference, labels map[string]string) *corev1.Pod {
	out := pod.DeepCopy()
	out.ResourceVersion, out.UID, out.ManagedFields = "", "", nil
	out.CreationTimestamp, out.Finalizers = metav1.Time{}, nil
	out.Labels, out.Annotations = Unreserved(out.Labels), Unreserved(out.Annotations)
	out.OwnerReferences = owners
	for key, value := range labels {
		metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
	}
	// The API server moves these three to where they belong.
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationGeneration, strconv.FormatInt(pod.Generation, 10))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationUID, string(pod.UID))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCreated, pod.CreationTimestamp.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCluster, cluster)
	if pod.Spec.NodeName != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationNode, pod.Spec.NodeName)
		out.Spec.NodeName = cluster
	}
	leaveOutAddresses(&out.Status)
	fitPod(out)
	return out
}

// SamePod reports whether writing want over have would change nothing.
func SamePod(want, have *corev1.Pod) bool {
	annotations := maps.Clone(want.Annotations)
	delete(annotations, v1alpha1.AnnotationUID)
	delete(annotations, v1alpha1.AnnotationCreated)
	delete(annotations, v1alpha1.AnnotationGeneration)
	return want.Generation == have.Generation && maps.Equal(want.Labels, have.Labels) && slices.Equal(want.Finalizers, have.Finalizers) &&
		maps.Equal(annotations, have.Annotations) &&
		equality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences) &&
		equality.Semantic.DeepEqual(want.Spec, have.Spec) &&
		equality.Semantic.DeepEqual(want.Status, have.Status)
}

// OwnersOf returns the owners of a pod above that has some, and of which its cluster tells others: what users and controllers above have written
// stays, but for the controllers that are told from below. One that is being deleted, as ending says, gets no pods that it does not have. What the garbage collector has taken off in favour of others is not put back.
func OwnersOf(have, told []metav1.OwnerReference, ending bool) []metav1.OwnerReference {
	out := slices.DeleteFunc(slices.Clone(have), projection.ControlsPods)
	for _, ref := range told {
		if !ending || slices.ContainsFunc(have, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
			out = append(out, ref)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// OwnerLabels are the labels of a mirror that its owner above gave it.
func OwnerLabels(mirror *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, key := range []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey} {
		if value := mirror.Labels[key]; value != "" {
			out[key] = value
		}
	}
	return out
}

// InUse is the finalizer that keeps a claim as long as pods use it. The stock controller above adds it to every claim that lacks it.
const InUse = "kubernetes.io/pvc-protection"

// ShowClaim returns what the logical cluster shows of a claim of a cluster. Our finalizer holds it there until the claim is gone.
func ShowClaim(claim *corev1.PersistentVolumeClaim, cluster string, owners []metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	out.ResourceVersion, out.UID, out.ManagedFields = "", "", nil
	out.CreationTimestamp, out.OwnerReferences = metav1.Time{}, owners
	out.Labels, out.Annotations = Unreserved(out.Labels), Unreserved(out.Annotations)
	for _, finalizer := range []string{InUse, v1alpha1.FinalizerProjection} {
		if !slices.Contains(out.Finalizers, finalizer) {
			out.Finalizers = append(out.Finalizers, finalizer)
		}
	}
	// The API server moves these two to where they belong.
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationUID, string(claim.UID))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCreated, claim.CreationTimestamp.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCluster, cluster)
	fitClaim(out)
	return out
}

// KeepAbove gives want what is not the cluster's to say: whether any pod uses the claim, which is about the pods above, owners that only
// the logical cluster knows, and no finalizer that a claim which is being deleted cannot get any more.
func KeepAbove(want, have *corev1.PersistentVolumeClaim) {
	isUse := func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	}
	want.Status.Conditions = slices.DeleteFunc(want.Status.Conditions, isUse)
	if i := slices.IndexFunc(have.Status.Conditions, isUse); i >= 0 {
		want.Status.Conditions = append(want.Status.Conditions, have.Status.Conditions[i])
	}
	want.OwnerReferences = append(Told(want.OwnerReferences), Above(have.OwnerReferences)...)
	if have.DeletionTimestamp != nil {
		want.Finalizers = slices.DeleteFunc(want.Finalizers, func(f string) bool { return !slices.Contains(have.Finalizers, f) })
	}
}

// SameClaim reports whether writing want over have would change nothing.
func SameClaim(want, have *corev1.PersistentVolumeClaim) bool {
	annotations := maps.Clone(want.Annotations)
	delete(annotations, v1alpha1.AnnotationUID)
	delete(annotations, v1alpha1.AnnotationCreated)
	return maps.Equal(want.Labels, have.Labels) && maps.Equal(annotations, have.Annotations) &&
		slices.Equal(slices.Sorted(slices.Values(want.Finalizers)), slices.Sorted(slices.Values(have.Finalizers))) &&
		equality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences) &&
		equality.Semantic.DeepEqual(want.Spec, have.Spec) &&
		sameClaimStatus(want.Status, have.Status)
}

// sameClaimStatus compares conditions in any order.
func sameClaimStatus(want, have corev1.PersistentVolumeClaimStatus) bool {
	sorted := func(in []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
		out := slices.Clone(in)
		slices.SortFunc(out, func(a, b corev1.PersistentVolumeClaimCondition) int {
			switch {
			case a.Type < b.Type:
				return -1
			case a.Type > b.Type:
				return 1
			}
			return 0
		})
		return out
	}
	want.Conditions, have.Conditions = sorted(want.Conditions), sorted(have.Conditions)
	return equality.Semantic.DeepEqual(want, have)
}

// ShowEvent returns an event of a cluster as it reads above, about the object there.
func ShowEvent(event *corev1.Event, about corev1.ObjectReference, cluster string) *corev1.Event {
	out := event.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Namespace: event.Namespace, Name: EventName(event.Name, cluster)}
	Event(out, about, cluster)
	return out
}

// Report returns a pod that a user made with what its cluster says of it, and with these owners. Generations are counted above: observed is what
// those of the cluster come to in these terms.
func Report(above, live *corev1.Pod, cluster string, owners []metav1.OwnerReference, observed int64) *corev1.Pod {
	out := above.DeepCopy()
	live.Status.DeepCopyInto(&out.Status)
	leaveOutAddresses(&out.Status)
	out.Status.ObservedGeneration = observed
	for i := range out.Status.Conditions {
		if out.Status.Conditions[i].ObservedGeneration != 0 {
			out.Status.Conditions[i].ObservedGeneration = observed
		}
	}
	out.OwnerReferences = owners
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationPodUID, string(live.UID))
	if live.Spec.NodeName != "" {
		delete(out.Annotations, v1alpha1.AnnotationPodCluster)
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationNode, live.Spec.NodeName)
		out.Spec.NodeName = cluster
	} else {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationPodCluster, cluster)
	}
	return out
}
