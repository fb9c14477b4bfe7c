package capacity

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amountsOf returns what one pod with these requests takes: the requests, and one of the pods that a node can hold.
func amountsOf(requests corev1.ResourceList) amounts {
	a := amounts{pods: 1}
	for name, quantity := range requests {
		switch name {
		case corev1.ResourceCPU:
			a.milliCPU = bounded(quantity, resource.Milli)
		case corev1.ResourceMemory:
			a.memory = bounded(quantity, 0)
		default:
			if a.other == nil {
				a.other = map[corev1.ResourceName]int64{}
			}
			a.other[name] = bounded(quantity, 0)
		}
	}
	return a
}

// mostAmount bounds what one pod requests, in units of which half a million pods can be added: 16 TiB of memory, which no pod has, and more of
// anything else.
const mostAmount = 1 << 44

// bounded reads a quantity that a cluster has chosen. What one pod requests must not make the sum of all overflow, or less than it is.
func bounded(quantity resource.Quantity, scale resource.Scale) int64 {
	switch most := resource.NewScaledQuantity(mostAmount, scale); {
	case quantity.Sign() <= 0:
		return 0
	case quantity.Cmp(*most) >= 0:
		return mostAmount
	}
	return quantity.ScaledValue(scale)
}

// add adds b so many times.
func (a *amounts) add(b amounts, times int64) {
	a.milliCPU += times * b.milliCPU
	a.memory += times * b.memory
	a.pods += times * b.pods
	for name, value := range b.other {
		if a.other == nil {
			a.other = map[corev1.ResourceName]int64{}
		}
		a.other[name] += times * value
		if a.other[name] == 0 {
			delete(a.other, name)
		}
	}
}

func (a amounts) equal(b amounts) bool {
	return a.milliCPU == b.milliCPU && a.memory == b.memory && a.pods == b.pods && maps.Equal(a.other, b.other)
}

// list writes the amounts as quantities, in the units that people use for each resource.
func (a amounts) list() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(a.milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(a.memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(a.pods, resource.DecimalSI),
	}
	for name, value := range a.other {
		list[name] = *resource.NewQuantity(value, formatOf(name))
	}
	return list
}

func formatOf(name corev1.ResourceName) resource.Format {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return resource.BinarySI
	}
	return resource.DecimalSI
}
