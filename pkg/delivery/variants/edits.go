// Package variants holds the edits of a variant set: what stages do to the desired state of an application.
//
// Every edit returns a new set and leaves its arguments as they are. An edit that has been made changes nothing when it is made again.
package variants

import (
	"maps"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Roll has the primary be a revision in a cluster. Where nothing ran before, it gets all of the traffic.
func Roll(set delivery.Set, revision delivery.Revision, cluster string) delivery.Set {
	part, _ := set.Part(delivery.Primary, cluster)
	part.Revision = revision
	out := Put(set, delivery.Primary, delivery.Variant{}, cluster, part)
	return balance(out, cluster)
}

// Add has a cluster run a copy of a revision, made as the variant says, in so many replicas of each workload. It gets no traffic beyond what it has.
func Add(set delivery.Set, name string, variant delivery.Variant, revision delivery.Revision, cluster string, replicas map[string]int32) delivery.Set {
	part, _ := set.Part(name, cluster)
	part.Revision, part.Replicas = revision, maps.Clone(replicas)
	out := Put(set, name, variant, cluster, part)
	return balance(out, cluster)
}

// Route sets the shares of the traffic in a cluster. Variants that are not named get nothing; those that the cluster does not run are left out,
// and what was meant for them goes to the others as balance says.
func Route(set delivery.Set, cluster string, shares map[string]int32) delivery.Set {
	out := set.Clone()
	for name, variant := range out {
		if part, has := variant.Clusters[cluster]; has {
			part.Traffic = max(0, shares[name])
			part.Routed = part.Routed || part.Traffic > 0
			variant.Clusters[cluster] = part
		}
	}
	return balance(out, cluster)
}

// Clean has a cluster run nothing of a variant. Its traffic goes to the others as balance says.
func Clean(set delivery.Set, variant, cluster string) delivery.Set {
	out := set.Clone()
	delete(out[variant].Clusters, cluster)
	if len(out[variant].Clusters) == 0 {
		delete(out, variant)
	}
	return balance(out, cluster)
}

// Silence has nothing of what a cluster runs get any traffic. What still comes there nobody else can take: it is served as before.
func Silence(set delivery.Set, cluster string) delivery.Set {
	out := set.Clone()
	for _, variant := range out {
		if part, has := variant.Clusters[cluster]; has {
			part.Routed, part.Traffic = part.Routed || part.Traffic > 0, 0
			variant.Clusters[cluster] = part
		}
	}
	return out
}

// Restore puts back what a cluster ran by a recorded set.
func Restore(set, recorded delivery.Set, cluster string) delivery.Set {
	out := set
	for _, name := range set.Names() {
		if _, was := recorded.Part(name, cluster); !was {
			out = Clean(out, name, cluster)
		}
	}
	for _, name := range recorded.Names() {
		if part, was := recorded.Part(name, cluster); was {
			out = Put(out, name, recorded[name], cluster, part)
		}
	}
	return balance(out, cluster)
}

// Put sets a part of a variant, and what the variant is beside its parts.
func Put(set delivery.Set, name string, variant delivery.Variant, cluster string, part delivery.Part) delivery.Set {
	out := set.Clone()
	variant.Clusters = out[name].Clusters
	if variant.Clusters == nil {
		variant.Clusters = map[string]delivery.Part{}
	}
	part.Replicas = maps.Clone(part.Replicas)
	variant.Clusters[cluster] = part
	out[name] = variant
	return out
}

// balance has the shares of a cluster add up to 100: the primary takes what is missing and gives what is too much, and where it is not enough
// the others give in the order of their names. It changes the set that it is given.
func balance(set delivery.Set, cluster string) delivery.Set {
	names := set.Names()
	total, first := int32(0), ""
	for _, name := range names {
		if part, has := set.Part(name, cluster); has {
			total += part.Traffic
			if first == "" || name == delivery.Primary {
				first = name
			}
		}
	}
	if first == "" || total == 100 {
		return set
	}
	for _, name := range append([]string{first}, names...) {
		part, has := set.Part(name, cluster)
		if !has || total == 100 {
			continue
		}
		share := max(0, part.Traffic+100-total)
		total += share - part.Traffic
		part.Traffic = share
		part.Routed = part.Routed || name != delivery.Primary && share > 0
		set[name].Clusters[cluster] = part
	}
	return set
}
