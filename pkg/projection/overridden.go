package projection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Overridden returns a template of a workload, which need not be the one in use, as a cluster gets it for which there are these overrides.
func (k Kind) Overridden(in Object, template *corev1.PodTemplateSpec, by Overrides) (*corev1.PodTemplateSpec, error) {
	if len(by.Items) == 0 {
		return template, nil
	}
	out := in.DeepCopyObject().(Object)
	if own := k.Demand(out).Template; own != nil {
		template.DeepCopyInto(own)
	}
	overridden, err := by.apply(k, out)
	if err != nil {
		return nil, fmt.Errorf("template of %s %s: %w", k.GVK.Kind, qualified(in.GetNamespace(), in.GetName()), err)
	}
	return k.Demand(overridden).Template, nil
}
