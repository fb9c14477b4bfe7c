package delivery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// The variants that the built-in stages edit.
const (
	Primary  = v1alpha1.VariantPrimary
	Canary   = v1alpha1.VariantCanary
	Baseline = v1alpha1.VariantBaseline
)

// Revision is one version of an application.
type Revision struct {
	// Name is that of the ApplicationRevision.
	Name string `json:"name"`
	// Hash is that of its content, which tells it from another one that had the same name before.
	Hash string `json:"hash"`
}

// Set is the desired state of an application: its variants by name.
type Set map[string]Variant

// Variant is the application itself, which is the primary, or a copy of it under names of its own.
type Variant struct {
	// Suffix is what the names of the copies end in, after a hyphen; empty for the primary.
	Suffix string `json:"suffix,omitempty"`
	// Service says that the variant has a copy of the application's Service as well.
	Service bool `json:"service,omitempty"`
	// Patches change the objects that the copies are made of, in their order.
	Patches []v1alpha1.VariantPatch `json:"patches,omitempty"`
	// Clusters holds what each cluster is to run of the variant, by the cluster's name.
	Clusters map[string]Part `json:"clusters"`
}

// Part is what one cluster is to run of a variant.
type Part struct {
	Revision Revision `json:"revision"`
	// Target is the name of the target whose manifests of the revision count here.
	Target string `json:"target,omitempty"`
	// Weight is the part, in percent, of each workload's replicas that go to the target. It is for the primary; nil gives each cluster the whole number.
	Weight *int32 `json:"weight,omitempty"`
	// Replicas are those of each workload of a copy, by the workload's kind and name as in "Deployment/web". The primary has none: it runs what
	// its objects, their autoscalers and their placement say.
	Replicas map[string]int32 `json:"replicas,omitempty"`
	// Traffic is the percentage of the cluster's traffic that goes to the variant. Those of all variants in a cluster add up to 100, or to 0 in one
	// that the application is about to leave.
	Traffic int32 `json:"traffic,omitempty"`
	// Routed says that the part has had a share of the traffic, so that it is drained before it goes.
	Routed bool `json:"routed,omitempty"`
}

// Fingerprint names what the workloads of a part are made of. A cluster reports the one that it has applied. Shares of the traffic are no part
// of it, since moving them makes no pod.
func (p Part) Fingerprint() string {
	var out strings.Builder
	out.WriteString(p.Revision.Name + "@" + p.Revision.Hash)
	for _, workload := range slices.Sorted(maps.Keys(p.Replicas)) {
		fmt.Fprintf(&out, ",%s=%d", workload, p.Replicas[workload])
	}
	return out.String()
}

// Equal reports whether both are the same in all.
func (p Part) Equal(other Part) bool {
	return p.Revision == other.Revision && p.Target == other.Target && p.Traffic == other.Traffic && p.Routed == other.Routed && ptr.Equal(p.Weight, other.Weight) && maps.Equal(p.Replicas, other.Replicas)
}

// Part returns what a cluster is to run of a variant.
func (s Set) Part(variant, cluster string) (Part, bool) {
	part, has := s[variant].Clusters[cluster]
	return part, has
}

// Names are the variants, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Clusters are those that are to run anything, sorted.
func (s Set) Clusters() []string {
	found := map[string]bool{}
	for _, variant := range s {
		for cluster := range variant.Clusters {
			found[cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Shares returns the traffic of each variant that a cluster is to run, by the variant's name.
func (s Set) Shares(cluster string) map[string]int32 {
	out := map[string]int32{}
	for name, variant := range s {
		if part, has := variant.Clusters[cluster]; has {
			out[name] = part.Traffic
		}
	}
	return out
}

// Only returns the part of the set that is about one cluster.
func (s Set) Only(cluster string) Set {
	out := Set{}
	for name, variant := range s {
		if part, has := variant.Clusters[cluster]; has {
			variant.Clusters = map[string]Part{cluster: part}
			out[name] = variant
		}
	}
	return out
}

// With returns the set with what another one says about one cluster.
func (s Set) With(cluster string, other Set) Set {
	out := make(Set, len(s))
	for name, variant := range s {
		variant.Clusters = maps.Clone(variant.Clusters)
		delete(variant.Clusters, cluster)
		out[name] = variant
	}
	for name, variant := range other {
		part, has := variant.Clusters[cluster]
		if !has {
			continue
		}
		variant.Clusters = out[name].Clusters
		if variant.Clusters == nil {
			variant.Clusters = map[string]Part{}
		}
		variant.Clusters[cluster] = part
		out[name] = variant
	}
	maps.DeleteFunc(out, func(_ string, variant Variant) bool { return len(variant.Clusters) == 0 })
	return out
}

// Clone returns a copy that shares nothing with the set.
func (s Set) Clone() Set {
	out := make(Set, len(s))
	for name, variant := range s {
		clusters := make(map[string]Part, len(variant.Clusters))
		for cluster, part := range variant.Clusters {
			part.Replicas = maps.Clone(part.Replicas)
			clusters[cluster] = part
		}
		variant.Clusters = clusters
		out[name] = variant
	}
	return out
}

// Differs reports whether a cluster is to run something else by the other set.
func (s Set) Differs(other Set, cluster string) bool {
	for _, pair := range [][2]Set{{s, other}, {other, s}} {
		for name, variant := range pair[0] {
			part, has := variant.Clusters[cluster]
			if !has {
				continue
			}
			against, there := pair[1][name]
			if p, has := against.Clusters[cluster]; !there || !has || !p.Equal(part) || !variant.alike(against) {
				return true
			}
		}
	}
	return false
}

// alike reports whether the parts of both variants are made in the same way.
func (v Variant) alike(other Variant) bool {
	return v.Suffix == other.Suffix && v.Service == other.Service && slices.EqualFunc(v.Patches, other.Patches, func(a, b v1alpha1.VariantPatch) bool {
		return a.Target == b.Target && slices.Equal(a.YAMLOps, b.YAMLOps)
	})
}

// Equal reports whether all clusters are to run the same by both sets.
func (s Set) Equal(other Set) bool {
	return !slices.ContainsFunc(append(s.Clusters(), other.Clusters()...), func(cluster string) bool { return s.Differs(other, cluster) })
}
