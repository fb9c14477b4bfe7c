package wanted

import (
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
)

// divisible are the kinds of which clusters may have any part: their pods have no numbers.
var divisible = map[schema.GroupKind]bool{{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "ReplicaSet"}: true}

// numbers are the replicas that the manifests of targets say.
type numbers struct {
	app     Application
	primary delivery.Variant
	read    *reader
	// said has what the manifests of a revision for a target say, by the names of both, and differ the workloads of a revision of which targets say different
	// numbers.
	said   map[string]map[Key]int32
	differ map[string]map[Key]bool
}

// portions returns the replicas that each cluster is to have of a workload of the primary, where targets say different numbers in one revision, as overlays
// do. It returns nil where all clusters have the number of the object: where they say the same, where weights of the targets divide it, and where an autoscaler
// sets it.
func (n *numbers) portions(p copies.Projected) map[string]int32 {
	key := KeyOf(p.Object)
	if p.Variant != delivery.Primary || !n.app.Pinned || n.app.Selected || !divisible[schema.GroupKind{Group: key.Group, Kind: key.Kind}] {
		return nil
	}
	differ := false
	for cluster := range p.Clusters {
		differ = differ || n.differing(n.primary.Clusters[cluster].Revision)[key]
	}
	if !differ {
		return nil
	}
	out := map[string]int32{}
	for cluster := range p.Clusters {
		part := n.primary.Clusters[cluster]
		own, said := n.of(part)[key]
		if !said || part.Weight != nil {
			return nil
		}
		out[cluster] = own
	}
	return out
}

// of are the replicas that the manifests of a part say, without those that they leave to an autoscaler.
func (n *numbers) of(part delivery.Part) map[Key]int32 {
	name := part.Revision.Name + "\x00" + part.Target
	if known := n.said[name]; known != nil {
		return known
	}
	objects, out := n.read.objects(part), map[Key]int32{}
	scaled := copies.Autoscaled(objects)
	for _, object := range objects {
		key := KeyOf(object)
		if !divisible[schema.GroupKind{Group: key.Group, Kind: key.Kind}] || scaled[copies.Key(object)] {
			continue
		}
		out[key] = copies.ReplicasOf(object)
	}
	n.said[name] = out
	return out
}

// differing are the workloads of a revision of which its targets say different numbers.
func (n *numbers) differing(revision delivery.Revision) map[Key]bool {
	if known := n.differ[revision.Name]; known != nil {
		return known
	}
	first, out := map[Key]int32{}, map[Key]bool{}
	targets := n.app.targets(revision)
	if len(targets) < 2 {
		targets = nil // as of most applications, whose manifests need not be looked at for this
	}
	for _, target := range targets {
		for key, said := range n.of(delivery.Part{Revision: revision, Target: target}) {
			if before, known := first[key]; !known {
				first[key] = said
			} else if before != said {
				out[key] = true
			}
		}
	}
	n.differ[revision.Name] = out
	return out
}

// setReplicas gives a workload the replicas that all clusters have together.
func setReplicas(workload *unstructured.Unstructured, portions map[string]int32) error {
	sum := int64(0)
	for _, n := range portions {
		sum += int64(n)
	}
	return unstructured.SetNestedField(workload.Object, min(sum, math.MaxInt32), "spec", "replicas")
}
