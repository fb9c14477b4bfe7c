package state

import (
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Sharing is how the requests to an application are shared out over its variants.
type Sharing struct {
	// Routed says that they are, and ByPods that it is by numbers of pods.
	Routed, ByPods bool
	// Workloads are those of each variant, and Behind the names of those whose pods get requests.
	Workloads map[string][]Workload
	Behind    map[string]bool
	// Silent are the clusters that do not answer.
	Silent map[string]bool
}

// Variants tells of the variants of a release what is ready of them, of what revision they are where that is the same everywhere, and what part of the
// requests they get. Where requests are shared out by numbers of pods, that is the part of the pods that are ready.
func Variants(variants []v1alpha1.Variant, s Sharing) []v1alpha1.Variant {
	out := make([]v1alpha1.Variant, len(variants))
	for i := range variants {
		variants[i].DeepCopyInto(&out[i])
		variant := &out[i]
		for j := range variant.Clusters {
			c := &variant.Clusters[j]
			c.Ready = s.ready(variant.Name, c.Cluster, false)
			if j == 0 {
				variant.Revision, variant.Hash = c.Revision, c.Hash
			} else if c.Revision != variant.Revision {
				variant.Revision, variant.Hash = "", ""
			}
		}
	}
	if s.Routed {
		s.count(out)
		s.total(out)
	}
	return out
}

// ready is how many pods of a variant are ready in a cluster, or of those that get requests.
func (s Sharing) ready(variant, cluster string, behind bool) (n int32) {
	if s.Silent[cluster] {
		return 0
	}
	for _, workload := range s.Workloads[variant] {
		if part := workload.Clusters[cluster]; !part.Stale && (!behind || s.Behind[workload.Name]) {
			n += part.Ready
		}
	}
	return n
}

// parts are what a cluster has of each variant.
func parts(variants []v1alpha1.Variant) map[string][]*v1alpha1.VariantCluster {
	out := map[string][]*v1alpha1.VariantCluster{}
	for i := range variants {
		for j := range variants[i].Clusters {
			c := &variants[i].Clusters[j]
			for len(out[c.Cluster]) < i {
				out[c.Cluster] = append(out[c.Cluster], nil)
			}
			out[c.Cluster] = append(out[c.Cluster], c)
		}
	}
	return out
}

// count has the shares be what the numbers of pods are, where several variants share the requests of a cluster.
func (s Sharing) count(variants []v1alpha1.Variant) {
	if !s.ByPods {
		return
	}
	for cluster, parts := range parts(variants) {
		all, ready, sharing := int32(0), make([]int32, len(parts)), 0
		for i, part := range parts {
			if part != nil && part.Traffic != nil && *part.Traffic > 0 {
				ready[i] = s.ready(variants[i].Name, cluster, true)
				all, sharing = all+ready[i], sharing+1
			}
		}
		if all == 0 || sharing < 2 {
			continue
		}
		for i, part := range parts {
			if part != nil && part.Traffic != nil && *part.Traffic > 0 {
				*part.Traffic = (ready[i]*100 + all/2) / all
			}
		}
	}
}

// total has each variant have its part of the requests to all clusters. Each has as many as its primary has pods that are ready, or is to have where none is.
func (s Sharing) total(variants []v1alpha1.Variant) {
	loads, whole := map[string]int64{}, int64(0)
	for cluster, parts := range parts(variants) {
		if !slices.ContainsFunc(parts, func(c *v1alpha1.VariantCluster) bool { return c != nil && (c.Traffic == nil || *c.Traffic > 0) }) {
			continue // the application is about to leave it
		}
		for _, workload := range s.Workloads[v1alpha1.VariantPrimary] {
			if s.Behind[workload.Name] {
				loads[cluster] += int64(max(0, workload.Clusters[cluster].Wanted))
			}
		}
		if ready := int64(s.ready(v1alpha1.VariantPrimary, cluster, true)); ready > 0 {
			loads[cluster] = min(loads[cluster], ready)
		}
		loads[cluster] = max(1, loads[cluster])
		whole += loads[cluster]
	}
	for i := range variants {
		if len(variants[i].Clusters) == 0 || whole == 0 || slices.ContainsFunc(variants[i].Clusters, func(c v1alpha1.VariantCluster) bool { return c.Traffic == nil }) {
			continue
		}
		sum := int64(0)
		for _, c := range variants[i].Clusters {
			sum += int64(*c.Traffic) * loads[c.Cluster]
		}
		share := int32((sum + whole/2) / whole)
		variants[i].Traffic = &share
	}
}
