package projection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourceQuota bounds below what controllers there make: pods, and the claims of StatefulSets. Everything else that a quota counts is
// made in the logical cluster, whose API server enforces it, and whose status counts all.
//
// A namespace that runs in one cluster has the whole quota there. In one that runs in several, each amount of pods is divided by what
// the workloads ask of it in each cluster, so that the parts never sum to more than the whole; claims are bounded above alone.
var resourceQuota = row[corev1.ResourceQuota, *corev1.ResourceQuota]{
	resource:   corev1.SchemeGroupVersion.WithResource("resourcequotas"),
	kind:       "ResourceQuota",
	namespaced: true,
	right:      rightBounds,
	divided:    true,
	fill: func(in, out *corev1.ResourceQuota, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		out.Spec.Hard = hardBelow(in, part)
	},
	general: func(in *corev1.ResourceQuota) bool { return len(hardBelow(in, Part{})) > 0 },
	// An API server bounds nothing before the controller beside it has counted.
	inForce: func(live *corev1.ResourceQuota) bool {
		return equality.Semantic.DeepEqual(live.Spec.Hard, live.Status.Hard)
	},
}

// hardBelow returns what a cluster gets of a quota.
func hardBelow(in *corev1.ResourceQuota, part Part) corev1.ResourceList {
	out := corev1.ResourceList{}
	whole := len(spreadOf(part.Workloads)) <= 1 && !part.leaves()
	var weights map[corev1.ResourceName]map[string]int64
	if !whole {
		weights = quotaWeights(in, part)
	}
	for name, hard := range in.Spec.Hard {
		switch base, pods := podAmount(name); {
		case pods && whole, countsClaims(name) && whole:
			out[name] = hard.DeepCopy()
		case pods:
			out[name] = hardOf(base, hard, weights[base], part.Cluster)
		}
	}
	return out
}

// podAmount returns the resource that a name in a quota counts the pods' part of, limits under a name of their own. Ok is false for a
// name that counts something else.
func podAmount(name corev1.ResourceName) (base corev1.ResourceName, ok bool) {
	switch name {
	case corev1.ResourcePods, "count/pods":
		return corev1.ResourcePods, true
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return name, true
	case corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return name, true
	case corev1.ResourceRequestsStorage:
		return "", false
	}
	if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return name, true
	}
	rest, requests := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return corev1.ResourceName(rest), requests
}

// countsClaims reports whether a name in a quota counts PersistentVolumeClaims.
func countsClaims(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage, "count/persistentvolumeclaims":
		return true
	}
	return strings.Contains(string(name), ".storageclass.storage.k8s.io/")
}

// hardOf is what a cluster gets of an amount: thousandths of cores, units of everything else.
func hardOf(base corev1.ResourceName, hard resource.Quantity, weights map[string]int64, cluster string) resource.Quantity {
	if base == corev1.ResourceCPU || base == corev1.ResourceLimitsCPU {
		amount := hard.MilliValue()
		if resource.NewMilliQuantity(amount, resource.DecimalSI).Cmp(hard) > 0 {
			amount-- // it was rounded up
		}
		return *resource.NewMilliQuantity(apportion(amount, weights)[cluster], resource.DecimalSI)
	}
	amount := hard.Value()
	if resource.NewQuantity(amount, resource.DecimalSI).Cmp(hard) > 0 {
		amount--
	}
	return *resource.NewQuantity(apportion(amount, weights)[cluster], hard.Format)
}
