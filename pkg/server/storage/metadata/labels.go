package metadata

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Relabel makes the change of labels from old to want to those that an object has by now.
func Relabel(object, old, want metav1.Object) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	for key := range old.GetLabels() {
		if _, kept := want.GetLabels()[key]; !kept {
			delete(labels, key)
		}
	}
	for key, value := range want.GetLabels() {
		if had, ok := old.GetLabels()[key]; !ok || had != value {
			labels[key] = value
		}
	}
	object.SetLabels(labels)
}
