package mirror

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// generationLabel is a label that the DaemonSet controller still gives its pods.
const generationLabel = "pod-template-generation"

// Owner is the controller above of a pod that its cluster has made.
type Owner struct {
	// Object is a ReplicaSet, a StatefulSet, a DaemonSet, a Job or a ReplicationController of the logical cluster.
	Object projection.Object
	// Template is the one that the pod carries out, as its cluster gets it.
	Template *corev1.PodTemplateSpec
	// Revision is the value of the label by which the pod names its ControllerRevision above, "" if there is none that is known.
	Revision string
	// Change is what webhooks of the logical cluster have changed of the pod before it was made, a strategic merge patch; nil for nothing.
	Change []byte
}

// Base is the spec of a new pod of the owner, of that name, before its cluster has a say.
func (o Owner) Base(pod string) *corev1.PodSpec {
	out := o.Template.Spec.DeepCopy()
	switch object := o.Object.(type) {
	case *appsv1.StatefulSet:
		out.Hostname, out.Subdomain = pod, object.Spec.ServiceName
		for i := range object.Spec.VolumeClaimTemplates {
			name := object.Spec.VolumeClaimTemplates[i].Name
			claim := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod},
			}}
			out.Volumes = append(slices.DeleteFunc(out.Volumes, func(v corev1.Volume) bool { return v.Name == name }), claim)
		}
	case *batchv1.Job:
		if index, ok := jobIndex(object, pod); ok && out.Hostname == "" {
			out.Hostname = object.Name + "-" + index
		}
	}
	return out
}

// Labels are those of the mirror of a pod. Stored are those of the mirror as it is, nil for a new one, which has those of the template: what
// users have changed since is stored, and what the cluster changes counts for nothing. What follows from the owner is told of the pod as it
// is now, since a mirror may be ahead of the owner's revision.
func (o Owner) Labels(pod, stored map[string]string, name string) map[string]string {
	out := maps.Clone(stored)
	if out == nil {
		out = Unreserved(o.Template.Labels)
		maps.Copy(orMake(&out), o.follows(pod, name))
	}
	if o.Revision != "" && pod[appsv1.ControllerRevisionHashLabelKey] != "" {
		orMake(&out)[appsv1.ControllerRevisionHashLabelKey] = o.Revision
	} else if stored == nil {
		delete(out, appsv1.ControllerRevisionHashLabelKey)
	}
	if hash := o.Object.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]; o.isReplicaSet() && hash != "" &&
		(stored == nil || stored[appsv1.DefaultDeploymentUniqueLabelKey] != "") {
		orMake(&out)[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
	return out
}

func orMake(in *map[string]string) map[string]string {
	if *in == nil {
		*in = map[string]string{}
	}
	return *in
}

func (o Owner) isReplicaSet() bool {
	_, ok := o.Object.(*appsv1.ReplicaSet)
	return ok
}

// follows are the labels that a controller gives a pod of that name beside those of the template. Numbers that only the cluster knows are the
// cluster's.
func (o Owner) follows(pod map[string]string, name string) map[string]string {
	out := map[string]string{}
	switch object := o.Object.(type) {
	case *appsv1.StatefulSet:
		out[appsv1.StatefulSetPodNameLabel] = name
		if _, ordinal, ok := cutNumber(name); ok && pod[appsv1.PodIndexLabel] != "" {
			out[appsv1.PodIndexLabel] = ordinal
		}
	case *appsv1.DaemonSet:
		if _, err := strconv.ParseUint(pod[generationLabel], 10, 63); err == nil {
			out[generationLabel] = pod[generationLabel]
		}
	case *batchv1.Job:
		if index, ok := jobIndex(object, name); ok && pod[batchv1.JobCompletionIndexAnnotation] != "" {
			out[batchv1.JobCompletionIndexAnnotation] = index
		}
	}
	return out
}

// Annotations are those of a new pod of the owner, of that name, before its cluster has a say.
func (o Owner) Annotations(pod map[string]string, name string) map[string]string {
	out := orEmpty(Unreserved(o.Template.Annotations))
	if job, ok := o.Object.(*batchv1.Job); ok && pod[batchv1.JobCompletionIndexAnnotation] != "" {
		if index, ok := jobIndex(job, name); ok {
			out[batchv1.JobCompletionIndexAnnotation] = index
		}
	}
	return out
}

// jobIndex is the completion index of a pod of an Indexed Job, whose name is JOB-INDEX-SUFFIX.
func jobIndex(job *batchv1.Job, pod string) (string, bool) {
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		return "", false
	}
	dash := strings.LastIndexByte(pod, '-')
	if dash < 0 {
		return "", false
	}
	rest, index, ok := cutNumber(pod[:dash])
	return index, ok && strings.HasPrefix(job.Name, rest)
}

// cutNumber splits a name at its last dash if a number follows.
func cutNumber(name string) (rest, number string, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", "", false
	}
	n, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name[dash+1:] {
		return "", "", false
	}
	return name[:dash], name[dash+1:], true
}

// Selector is how a controller tells its pods apart; nil if it is none that makes pods.
func Selector(controller projection.Object) *metav1.LabelSelector {
	kind, known := projection.KindOf(controller)
	if !known || kind.Creator == "" {
		return nil
	}
	return kind.Controls(controller)
}

// Selects reports whether a controller has pods with these labels. One whose selector nobody can read has.
func Selects(controller projection.Object, labels map[string]string) bool {
	in := Selector(controller)
	if in == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	return err != nil || selector.Matches(labelSet(labels))
}
