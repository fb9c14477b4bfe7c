package engine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// priorities resolves PriorityClasses, as admission does for pods.
type priorities struct {
	classes schedulinglisters.PriorityClassLister
}

// of returns the priority of pods that are made from a template, and whether they may stop others. A class that is not there counts like
// none: no pod can be made of it anyway.
func (p priorities) of(template *corev1.PodTemplateSpec) (priority int32, preempts bool) {
	preempts = true
	never := func(policy *corev1.PreemptionPolicy) bool { return policy != nil && *policy == corev1.PreemptNever }
	name := ""
	if template != nil {
		name, preempts = template.Spec.PriorityClassName, !never(template.Spec.PreemptionPolicy)
	}
	if class, err := p.classes.Get(name); name != "" && err == nil {
		return class.Value, preempts && !never(class.PreemptionPolicy)
	}
	_, priority = p.values()
	return priority, preempts
}

// brought returns the value of the PriorityClass that pods of a template may bring along, nil if there is none.
func (p priorities) brought(template *corev1.PodTemplateSpec) *int32 {
	if template == nil || template.Spec.PriorityClassName == "" {
		return nil
	}
	class, err := p.classes.Get(template.Spec.PriorityClassName)
	if err != nil || !projection.GoesAlong(class) {
		return nil
	}
	return &class.Value
}

// values returns the priority of each class, and that of pods which name none: the lowest of the global defaults, of which there should be
// no more than one, and 0 without any.
func (p priorities) values() (byName map[string]int32, otherwise int32) {
	all, _ := p.classes.List(labels.Everything()) // listing from a cache cannot fail
	byName, found := make(map[string]int32, len(all)), false
	for _, class := range all {
		byName[class.Name] = class.Value
		if class.GlobalDefault && (!found || class.Value < otherwise) {
			otherwise, found = class.Value, true
		}
	}
	return byName, otherwise
}
