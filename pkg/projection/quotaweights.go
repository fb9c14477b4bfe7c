package projection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// quotaWeights returns by resource, in the names of podAmount, what the workloads that a quota counts ask for in each cluster. Where no
// pod asks for a resource, which then is a bound on nothing or what a cluster's own defaults make of it, the numbers of pods count in its
// stead; and without any pods all clusters count alike.
func quotaWeights(in *corev1.ResourceQuota, part Part) map[corev1.ResourceName]map[string]int64 {
	out := map[corev1.ResourceName]map[string]int64{}
	for name := range in.Spec.Hard {
		if base, ok := podAmount(name); ok {
			out[base] = map[string]int64{}
		}
	}
	pods, alike := map[string]int64{}, map[string]int64{}
	for _, w := range part.Workloads {
		asked := askedFor(&w.Demand.Template.Spec, part.LimitRanges)
		counted := countedBy(in, &w.Demand.Template.Spec, asked)
		for cluster, share := range w.Decision {
			alike[cluster] = 1
			if !counted {
				continue
			}
			pods[cluster] += int64(share.Replicas)
			for base, weights := range out {
				weights[cluster] += asked[base] * int64(share.Replicas)
			}
		}
	}
	for base, weights := range out {
		for _, instead := range []map[string]int64{weights, pods, alike} {
			if out[base] = instead; sum(instead) > 0 {
				break
			}
		}
	}
	return out
}

func sum(weights map[string]int64) int64 {
	var total int64
	for _, weight := range weights {
		total += weight
	}
	return total
}

// askedFor returns what one pod asks for, once the defaults of its namespace have been filled in.
func askedFor(in *corev1.PodSpec, defaults []*corev1.LimitRange) placement.Resources {
	template := &corev1.PodTemplateSpec{Spec: *in.DeepCopy()}
	for _, containers := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range containers {
			for _, d := range defaults {
				complete(&containers[i].Resources, d)
			}
		}
	}
	out := placement.RequestsOf(template)
	for name, amount := range placement.LimitsOf(template) {
		out["limits."+name] = amount
	}
	return out
}

// complete fills in the defaults that a LimitRange has for containers.
func complete(in *corev1.ResourceRequirements, defaults *corev1.LimitRange) {
	for _, item := range defaults.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			in.Requests = completed(in.Requests, item.DefaultRequest)
			in.Limits = completed(in.Limits, item.Default)
		}
	}
}

func completed(in, defaults corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range defaults {
		if _, ok := in[name]; ok {
			continue
		}
		if in == nil {
			in = corev1.ResourceList{}
		}
		in[name] = quantity.DeepCopy()
	}
	return in
}

// countedBy reports whether a quota counts a pod, by its scopes. A scope of later versions counts every pod, which divides less well and
// bounds as much.
func countedBy(in *corev1.ResourceQuota, pod *corev1.PodSpec, asked placement.Resources) bool {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, scope := range in.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if in.Spec.ScopeSelector != nil {
		scopes = append(scopes, in.Spec.ScopeSelector.MatchExpressions...)
	}
	return !slices.ContainsFunc(scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !inScope(s, pod, asked) })
}

func inScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.PodSpec, asked placement.Resources) bool {
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(asked)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(asked)
	case corev1.ResourceQuotaScopePriorityClass:
		return ofPriorityClass(scope, pod.PriorityClassName)
	}
	return true
}

// bestEffort reports whether a pod asks for no time and no memory.
func bestEffort(asked placement.Resources) bool {
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	} {
		if asked[name] > 0 {
			return false
		}
	}
	return true
}

func ofPriorityClass(scope corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch scope.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(scope.Values, class)
	}
	return slices.Contains(scope.Values, class)
}
