package versions

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// kept are the fields of workloads that are read, of whatever kind. Images and lists are kept beside.
var kept = [][]string{
	{"spec", "replicas"}, {"spec", "paused"}, {"spec", "suspend"}, {"spec", "updateStrategy", "rollingUpdate", "partition"}, {"spec", "chart", "spec", "version"},
	{"status", "observedGeneration"}, {"status", "lastAppliedRevision"}, {"status", "lastAttemptedRevision"},
	{"status", "replicas"}, {"status", "readyReplicas"}, {"status", "availableReplicas"}, {"status", "updatedReplicas"},
	{"status", "desiredNumberScheduled"}, {"status", "updatedNumberScheduled"}, {"status", "numberReady"}, {"status", "numberAvailable"},
}

// lists are those of a status that are read, with what is kept of each entry.
var lists = map[string][]string{
	"conditions": {"type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"},
	"history":    {"chartVersion", "status"},
}

// templates are where kinds have what their pods are made of.
var templates = [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}}

// Trim returns what of an object is read here, which is little: others may have made it as large as they like. The object is not changed.
func Trim(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	out.SetUID(o.GetUID())
	out.SetResourceVersion(o.GetResourceVersion())
	out.SetGeneration(o.GetGeneration())
	labels := map[string]string{}
	for _, key := range []string{weave.PipelineLabel, weave.OlderPipelineLabel, v1alpha1.LabelLogicalCluster} {
		if value, has := o.GetLabels()[key]; has {
			labels[key] = value
		}
	}
	out.SetLabels(labels)
	for _, path := range kept {
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		switch value.(type) {
		case string, int64, bool:
			set(out, value, path...)
		}
	}
	for _, path := range templates {
		for _, field := range []string{"containers", "initContainers"} {
			if containers := entries(o, []string{"name", "image"}, append(path[:len(path):len(path)], field)...); containers != nil {
				set(out, containers, append(path[:len(path):len(path)], field)...)
			}
		}
	}
	for name, fields := range lists {
		if found := entries(o, fields, "status", name); found != nil {
			set(out, found, "status", name)
		}
	}
	return out
}

// entries returns some fields of the first objects of a list, nil if there are none.
func entries(o *unstructured.Unstructured, fields []string, path ...string) []any {
	var out []any
	for _, entry := range listIn(o, path...) {
		reduced := map[string]any{}
		for _, field := range fields {
			switch value := entry[field].(type) {
			case string, int64:
				reduced[field] = value
			}
		}
		out = append(out, reduced)
	}
	return out
}

// set sets a field of an object that has been made here, in which every field on the way is an object.
func set(out *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(out.Object, value, path...)
}
