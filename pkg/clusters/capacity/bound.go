package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bound returns a copy of list with no more of any resource than the limits. A limit on a resource that list lacks adds nothing.
func Bound(list, limits corev1.ResourceList) corev1.ResourceList {
	bound := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if limit, ok := limits[name]; ok && limit.Cmp(quantity) < 0 {
			quantity = limit
		}
		bound[name] = quantity.DeepCopy()
	}
	return bound
}

// Only returns a copy of list with the resources that names has, at zero where list lacks them.
func Only(list, names corev1.ResourceList) corev1.ResourceList {
	only := make(corev1.ResourceList, len(names))
	for name, of := range names {
		quantity, ok := list[name]
		if !ok {
			quantity = *resource.NewQuantity(0, of.Format)
		}
		only[name] = quantity.DeepCopy()
	}
	return only
}
