package placement

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Resources are amounts by resource name: CPU in thousandths of a core, everything else in its own unit (bytes, pieces). An
// amount may be negative where more is requested than there is.
type Resources map[corev1.ResourceName]int64

// Unbounded is the number of replicas that fit where nothing bounds them. Numbers of replicas never exceed it.
const Unbounded = math.MaxInt32

// ResourcesOf converts a resource list. Parts of a thousandth or of a unit count as a whole one.
func ResourcesOf(list corev1.ResourceList) Resources {
	r := make(Resources, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			r[name] = quantity.MilliValue()
		} else {
			r[name] = quantity.Value()
		}
	}
	return r
}

// RequestsOf is what one replica made from the template asks of a cluster: the requests of its containers, init containers and
// overhead as kube-scheduler counts them, and its place among the pods.
func RequestsOf(template *corev1.PodTemplateSpec) Resources {
	requests := podresource.PodRequests(&corev1.Pod{Spec: template.Spec}, podresource.PodResourcesOptions{})
	r := ResourcesOf(requests)
	r[corev1.ResourcePods] = 1
	return r
}

// LimitsOf is what one replica made from the template may use at most, as far as it says so.
func LimitsOf(template *corev1.PodTemplateSpec) Resources {
	return ResourcesOf(podresource.PodLimits(&corev1.Pod{Spec: template.Spec}, podresource.PodResourcesOptions{}))
}

// Add adds n times the other amounts to r, which must not be nil.
func (r Resources) Add(other Resources, n int64) {
	for name, amount := range other {
		r[name] += amount * n
	}
}

// Amounts are Resources as a list, by name where they come from Resources. Clusters have theirs like that: so few are read and written
// several times faster than a map, and a decision may have to do so for a thousand clusters.
type Amounts []Amount

// Amount is one of Amounts.
type Amount struct {
	Name  corev1.ResourceName
	Value int64
}

// Amounts returns r as a list; nil if r is nil.
func (r Resources) Amounts() Amounts {
	if r == nil {
		return nil
	}
	out := make(Amounts, 0, len(r))
	for name, value := range r {
		out = append(out, Amount{name, value})
	}
	slices.SortFunc(out, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Of is the amount of a resource, 0 if it is not among them.
func (a Amounts) Of(name corev1.ResourceName) int64 {
	for i := range a {
		if a[i].Name == name {
			return a[i].Value
		}
	}
	return 0
}

// Has reports whether the resource is among them.
func (a Amounts) Has(name corev1.ResourceName) bool {
	return slices.ContainsFunc(a, func(one Amount) bool { return one.Name == name })
}

// Add adds to the amount of a resource. As with append, the result takes the place of a, which may change.
func (a Amounts) Add(name corev1.ResourceName, value int64) Amounts {
	for i := range a {
		if a[i].Name == name {
			a[i].Value += value
			return a
		}
	}
	return append(a, Amount{name, value})
}

// Plus returns the amounts with n times the other ones, and leaves a alone.
func (a Amounts) Plus(other Resources, n int64) Amounts {
	out := slices.Clone(a)
	for _, more := range other.Amounts() {
		out = out.Add(more.Name, more.Value*n)
	}
	return out
}

// Need is the amount of one resource that a replica needs; above 0.
type Need struct {
	Name   corev1.ResourceName
	Amount int64
}

// Endings of the names by which quotas bound the claims of one StorageClass, whose name stands before.
const (
	classStorage = ".storageclass.storage.k8s.io/" + string(corev1.ResourceRequestsStorage)
	classClaims  = ".storageclass.storage.k8s.io/" + string(corev1.ResourcePersistentVolumeClaims)
)

// CountsClaims reports whether a resource is one that volume claims ask for. How much a cluster has of that nobody says; limits may bound it.
func CountsClaims(name corev1.ResourceName) bool {
	return name == corev1.ResourceRequestsStorage || name == corev1.ResourcePersistentVolumeClaims ||
		strings.HasSuffix(string(name), classStorage) || strings.HasSuffix(string(name), classClaims)
}

// ClaimRequestsOf is what the volume claims ask for that are made of templates, in the words of quotas; nil for none. Those of a class that
// the cluster chooses count for no class.
func ClaimRequestsOf(templates []corev1.PersistentVolumeClaim) Resources {
	var out Resources
	for i := range templates {
		spec := &templates[i].Spec
		if out == nil {
			out = Resources{}
		}
		storage := spec.Resources.Requests[corev1.ResourceStorage]
		out[corev1.ResourceRequestsStorage] += storage.Value()
		out[corev1.ResourcePersistentVolumeClaims]++
		if class := spec.StorageClassName; class != nil && *class != "" {
			out[corev1.ResourceName(*class+classStorage)] += storage.Value()
			out[corev1.ResourceName(*class+classClaims)]++
		}
	}
	return out
}
