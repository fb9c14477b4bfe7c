package projection

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SelectsPods reports whether objects of the kind can follow workloads by the labels of their pods.
func (k Kind) SelectsPods() bool { return k.selector != nil }

// Selects reports whether the object, of a kind that selects pods or not, belongs into the clusters that run pods of a workload of kind of:
// whether its selector meets the labels of the workload's pod template, and those that controllers give its pods. A Service for one pod of a
// StatefulSet, say, selects by the name of the pod alone.
func (k Kind) Selects(in Object, of Kind, workload Object) bool {
	if k.selector == nil || of.demand == nil {
		return false
	}
	selector := k.selector(in)
	if selector == nil {
		return false
	}
	for pods := range of.demand(workload).Pods() {
		if selectorMatches(selector, of.podLabels(workload, pods.Template.Labels, selector)) {
			return true
		}
	}
	return false
}

// podLabels are the labels that the pods of a workload by one template, which has some, have in common, and of those that they have besides the
// ones that a selector asks for.
func (k Kind) podLabels(workload Object, template map[string]string, selector *metav1.LabelSelector) map[string]string {
	var added map[string]string
	add := func(key string, values ...string) {
		if _, has := template[key]; has {
			return // the template's own
		}
		i := slices.IndexFunc(values, func(value string) bool {
			return ofTheNode(key) || k.labels != nil && k.labels(workload, key, value)
		})
		if i < 0 {
			return
		}
		if added == nil {
			added = map[string]string{}
			maps.Copy(added, template)
		}
		added[key] = values[i]
	}
	for key, value := range selector.MatchLabels {
		add(key, value)
	}
	for _, e := range selector.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn {
			add(e.Key, e.Values...)
		}
	}
	if added == nil {
		return template
	}
	return added
}

// selectorMatches reports whether a selector selects pods with these labels: all of them if it is empty, none if there is none. One that
// does not parse, which no API server accepts, selects nothing.
func selectorMatches(selector *metav1.LabelSelector, podLabels map[string]string) bool {
	if selector != nil && len(selector.MatchExpressions) == 0 {
		return labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(podLabels)) // most are like that, and parsing takes time
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(podLabels))
}

// ofTheNode reports whether an API server copies the label from a node to the pods on it. Of whatever zones a cluster has, only it knows.
func ofTheNode(key string) bool {
	return key == corev1.LabelTopologyRegion || key == corev1.LabelTopologyZone
}

// labelTemplateGeneration is what the controller of DaemonSets still labels pods with.
const labelTemplateGeneration = "pod-template-generation"

// replicaLabels are those that the controller of StatefulSets gives a pod: the names of its replicas and their ordinals. Which revision is
// called what is known below alone.
func replicaLabels(in *appsv1.StatefulSet, key, value string) bool {
	switch key {
	case appsv1.StatefulSetPodNameLabel:
		ordinal, ok := strings.CutPrefix(value, in.Name+"-")
		return ok && isNumber(ordinal)
	case appsv1.PodIndexLabel:
		return isNumber(value)
	case appsv1.ControllerRevisionHashLabelKey:
		return true
	}
	return false
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
