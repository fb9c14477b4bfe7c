package rules

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Pods cannot be made without their PriorityClass and their RuntimeClass, which are each cluster's own.

// class is one that the pods of a workload name.
type class struct {
	kind, name string
}

const priorityClass = "PriorityClass"

func (c class) String() string { return c.kind + " " + c.name }

// namesClasses reports whether a workload, by its pods or by itself, names any class.
func namesClasses(w *placement.Workload) bool {
	return w.StorageClass != "" || w.Template != nil && namesPodClasses(w.Template) || slices.ContainsFunc(w.Beside, namesPodClasses)
}

func namesPodClasses(template *corev1.PodTemplateSpec) bool {
	return template.Spec.PriorityClassName != "" || ptr.Deref(template.Spec.RuntimeClassName, "") != ""
}

// lacks returns the class that the pods of a workload name and that a cluster does not have, such as "PriorityClass high", if any is known to be
// lacking.
func lacks(c *placement.Cluster, w *placement.Workload) (lacking class, is bool) {
	if !namesClasses(w) || c.Classes == nil {
		return class{}, false
	}
	if name := w.StorageClass; name != "" &&
		!slices.ContainsFunc(c.Classes.StorageClasses, func(s v1alpha1.ClusterStorageClass) bool { return s.Name == name }) {
		return class{"StorageClass", name}, true
	}
	if w.Template == nil {
		return class{}, false
	}
	if lacking, is = lacksForPods(c, w.Template, w.Brings); is {
		return lacking, true
	}
	for _, template := range w.Beside {
		if lacking, is = lacksForPods(c, template, nil); is {
			return lacking, true
		}
	}
	return class{}, false
}

// lacksForPods returns the class that pods of a template name and that a cluster does not have. Brings is the value of their PriorityClass if that
// may go along with them.
func lacksForPods(c *placement.Cluster, template *corev1.PodTemplateSpec, brings *int32) (lacking class, is bool) {
	if name := template.Spec.PriorityClassName; name != "" && !offersPriority(c, name, brings) {
		return class{priorityClass, name}, true
	}
	if name := ptr.Deref(template.Spec.RuntimeClassName, ""); name != "" && !has(c.Classes.RuntimeClasses, name) {
		return class{"RuntimeClass", name}, true
	}
	return class{}, false
}

// LacksPriorityClass reports whether it is the PriorityClass that a cluster lacks.
func LacksPriorityClass(c *placement.Cluster, w *placement.Workload) bool {
	lacking, is := lacks(c, w)
	return is && lacking.kind == priorityClass
}

// offersPriority reports whether pods of a PriorityClass can be made in a cluster, which has it or lets it come along.
func offersPriority(c *placement.Cluster, name string, brings *int32) bool {
	most := c.Allows.PriorityClassesUpTo
	return has(c.Classes.PriorityClasses, name) || brings != nil && most != nil && *brings <= *most
}

func has(sorted []string, name string) bool {
	_, found := slices.BinarySearch(sorted, name)
	return found
}

// WithoutClass returns what clusters refuse that lack a class of the workload, beside what they say themselves: all pods of its share that they do
// not have. Those that run need no class any more.
func WithoutClass(s placement.Snapshot, w *placement.Workload, current placement.Decision) map[string]placement.Refusal {
	out, copied := w.Refused, false
	for name, share := range current {
		at, joined := s.Index(name)
		if !joined || share.Replicas == 0 {
			continue
		}
		lacking, is := lacks(s.Clusters()[at], w)
		if !is {
			continue
		}
		if !copied {
			copied, out = true, maps.Clone(w.Refused)
		}
		if out == nil {
			out = map[string]placement.Refusal{}
		}
		out[name] = placement.Refusal{Pods: share.Replicas, Says: fmt.Sprintf("it has no %s", lacking)}
	}
	return out
}
