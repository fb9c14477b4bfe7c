package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// domain is what the keys of Manifold's labels and annotations begin with.
const domain = v1alpha1.GroupName

type labelSet = labels.Set

// Reserved reports whether a label or an annotation is Manifold's.
func Reserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

// Unreserved returns labels or annotations without those of Manifold.
func Unreserved(in map[string]string) map[string]string {
	out := maps.Clone(in)
	maps.DeleteFunc(out, func(key, _ string) bool { return Reserved(key) })
	return out
}

// Pod makes the mirror of a pod what may be shown of it. Stored is the mirror as it is, nil for a new one. What carries the marks of the
// protocol, and the references to owners, stay.
func (o Owner) Pod(pod, stored *corev1.Pod) {
	if stored == nil {
		made := o.changed(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: o.Labels(pod.Labels, nil, pod.Name), Finalizers: o.Template.Finalizers}, Spec: *o.Base(pod.Name),
		})
		pod.Labels, pod.Finalizers, pod.Spec = made.Labels, finalizers(pod.Finalizers, made.Finalizers), Spec(&pod.Spec, &made.Spec)
		return
	}
	pod.Finalizers = finalizers(pod.Finalizers, stored.Finalizers)
	pod.Labels = o.Labels(pod.Labels, orEmpty(stored.Labels), pod.Name)
	pod.Spec = Spec(&pod.Spec, &stored.Spec)
}

// finalizers are those that hold the mirror of a pod. Only those of the template do, as long as the pod has them: they are for controllers above,
// and taken off there. What else holds a pod is its cluster's own.
func finalizers(pod, above []string) []string {
	var out []string
	for _, f := range above {
		if slices.Contains(pod, f) && !meansAbove(f) && !Reserved(f) && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func orEmpty(in map[string]string) map[string]string {
	if in == nil {
		return map[string]string{}
	}
	return in
}

// CheckPod returns why a pod cannot be the mirror of one in a cluster that has this owner, nil if it can. Complete gives a pod the defaults that
// it gets on its way to storage, and a template does not; it may be nil.
func (o Owner) CheckPod(pod, stored *corev1.Pod, cluster string, complete func(*corev1.Pod)) error {
	want := pod.DeepCopy()
	o.Pod(want, stored)
	if complete != nil {
		complete(want)
	}
	switch {
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != cluster:
		return fmt.Errorf("spec.nodeName is %q, which is not its cluster", pod.Spec.NodeName)
	case !sameMaps(pod.Labels, want.Labels):
		return fmt.Errorf("metadata.labels: %s", differingKey(pod.Labels, want.Labels))
	case !slices.Equal(pod.Finalizers, want.Finalizers):
		return fmt.Errorf("metadata.finalizers: %q are not all the template's, or were taken off above", pod.Finalizers)
	case !equality.Semantic.DeepEqual(pod.Spec, want.Spec):
		return fmt.Errorf("spec: %s", differingField(&pod.Spec, &want.Spec))
	}
	if stored == nil && o.Change != nil {
		pod = pod.DeepCopy()
		delete(pod.Annotations, v1alpha1.AnnotationAdmitted) // it has proved the change, and is not stored
	}
	return checkMarks(pod.Annotations, cluster)
}

// checkMarks returns what is wrong with the annotations of Manifold on a mirror.
func checkMarks(annotations map[string]string, cluster string) error {
	for key, value := range annotations {
		switch {
		case !Reserved(key):
		case key == v1alpha1.AnnotationCluster && value == cluster:
		case key == v1alpha1.AnnotationNode && len(validation.IsDNS1123Subdomain(value)) == 0:
		default:
			return fmt.Errorf("metadata.annotations[%s]: a mirror cannot carry %.100q", key, value)
		}
	}
	return nil
}

// TakenOver makes of the mirror of a pod, as it is stored, a pod of the user's own that runs where it is. Pod is what is to be written, with the
// status and the annotations that the cluster tells of. Template is that of its last controller, nil if nobody knows it any more.
func TakenOver(pod, stored *corev1.Pod, template *corev1.PodSpec, cluster string) {
	pod.Labels, pod.Finalizers = takenLabels(pod.Labels, stored.Labels), slices.Clone(stored.Finalizers)
	pod.Spec = Bare(&stored.Spec, template)
	pod.Spec.NodeName = ""
	pod.Annotations = orEmpty(Unreserved(pod.Annotations))
	if node := stored.Annotations[v1alpha1.AnnotationNode]; node != "" {
		pod.Annotations[v1alpha1.AnnotationNode] = node
	}
	if stored.Spec.NodeName != "" {
		pod.Spec.NodeName = cluster
	}
	pod.Annotations[v1alpha1.AnnotationPlacement] = placement.Decision{cluster: {Replicas: 1}}.String()
	pod.Annotations[v1alpha1.AnnotationPodUID] = string(stored.UID)
}

// takenLabels are those of the mirror as it is stored. The hashes by which controllers tell their templates apart have the values that they have in
// the cluster: who takes the pod over there looks for these.
func takenLabels(pod, stored map[string]string) map[string]string {
	out := maps.Clone(stored)
	for _, key := range []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey} {
		if _, ok := stored[key]; ok && pod[key] != "" {
			out[key] = pod[key]
		}
	}
	return out
}

// CheckTakenOver returns why a pod is not what TakenOver makes of a mirror, nil if it is.
func CheckTakenOver(pod, stored *corev1.Pod, template *corev1.PodSpec, cluster string) error {
	if template == nil && stored.Spec.NodeName == "" {
		return fmt.Errorf("it runs on no node, and nobody knows the template that it was made by, so it cannot begin elsewhere")
	}
	want := pod.DeepCopy()
	TakenOver(want, stored, template, cluster)
	switch {
	case !sameMaps(pod.Labels, want.Labels):
		return fmt.Errorf("metadata.labels: %s", differingKey(pod.Labels, want.Labels))
	case !sameMaps(pod.Annotations, want.Annotations):
		return fmt.Errorf("metadata.annotations: %s", differingKey(pod.Annotations, want.Annotations))
	case !slices.Equal(pod.Finalizers, stored.Finalizers):
		return fmt.Errorf("metadata.finalizers: they are not the cluster's to change")
	case !equality.Semantic.DeepEqual(pod.Spec, want.Spec):
		return fmt.Errorf("spec: %s", differingField(&pod.Spec, &want.Spec))
	}
	return nil
}

// reported are the annotations by which a cluster tells where it has a pod of a user's own.
var reported = []string{v1alpha1.AnnotationNode, v1alpha1.AnnotationPodUID, v1alpha1.AnnotationPodCluster}

// CheckReport returns why an update is not what a cluster may say of a pod of a user's own: its status, its node, and its UID there. Owners are
// looked at elsewhere.
func CheckReport(pod, stored *corev1.Pod, cluster string) error {
	like := pod.DeepCopy()
	for _, key := range reported {
		delete(like.Annotations, key)
		if value, ok := stored.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&like.ObjectMeta, key, value)
		}
	}
	if stored.Spec.NodeName == "" && pod.Spec.NodeName == cluster {
		like.Spec.NodeName = ""
	}
	node, uid := pod.Annotations[v1alpha1.AnnotationNode], pod.Annotations[v1alpha1.AnnotationPodUID]
	in, was := pod.Annotations[v1alpha1.AnnotationPodCluster], stored.Annotations[v1alpha1.AnnotationPodCluster]
	switch {
	case pod.Generation != stored.Generation:
		return fmt.Errorf("metadata.generation: it is counted above")
	case !sameMaps(like.Labels, stored.Labels):
		return fmt.Errorf("metadata.labels: %s", differingKey(like.Labels, stored.Labels))
	case !sameMaps(like.Annotations, stored.Annotations):
		return fmt.Errorf("metadata.annotations: %s", differingKey(like.Annotations, stored.Annotations))
	case !slices.Equal(like.Finalizers, stored.Finalizers):
		return fmt.Errorf("metadata.finalizers: they are not the cluster's to change")
	case !equality.Semantic.DeepEqual(like.Spec, stored.Spec):
		return fmt.Errorf("spec: %s", differingField(&like.Spec, &stored.Spec))
	case node != "" && len(validation.IsDNS1123Subdomain(node)) > 0:
		return fmt.Errorf("metadata.annotations[%s]: %.100q is no node", v1alpha1.AnnotationNode, node)
	case uid == "" && stored.Spec.NodeName != "" && stored.Annotations[v1alpha1.AnnotationPodUID] != "":
		return fmt.Errorf("metadata.annotations[%s]: what has a node has begun there, and begins nowhere else", v1alpha1.AnnotationPodUID)
	case len(uid) > maxUID:
		return fmt.Errorf("metadata.annotations[%s]: %.100q is not a UID", v1alpha1.AnnotationPodUID, uid)
	case in != "" && in != cluster && in != was:
		return fmt.Errorf("metadata.annotations[%s]: %.100q is another cluster", v1alpha1.AnnotationPodCluster, in)
	}
	return nil
}

// maxUID is far more than any API server writes.
const maxUID = 128

func sameMaps(a, b map[string]string) bool { return maps.Equal(a, b) }

// differingKey names the first key, in order, by which two maps differ.
func differingKey(have, want map[string]string) string {
	all := maps.Clone(orEmpty(have))
	maps.Copy(all, want)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		is, ok := have[key]
		should, known := want[key]
		switch {
		case ok && !known:
			return fmt.Sprintf("%s=%.100q is neither the template's nor a user's", key, is)
		case !ok && known:
			return fmt.Sprintf("%s is missing", key)
		case is != should:
			return fmt.Sprintf("%s is %.100q, want %.100q", key, is, should)
		}
	}
	return "they are the same"
}
