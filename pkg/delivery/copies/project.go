package copies

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Projected is an object of the logical cluster that a variant set stands for.
type Projected struct {
	Variant string
	// Object is what it is in the clusters that run the newest revision of those which have it.
	Object *unstructured.Unstructured
	// From is whose content that is.
	From Share
	// Clusters say what each cluster has of it.
	Clusters map[string]Share
}

// Share is what a cluster has of an object.
type Share struct {
	// Revision is the name of the one whose content it holds, and Target that of the target whose manifests count.
	Revision, Target string
	// Replicas are those of a copy's workload; nil leaves them to whoever sets them.
	Replicas *int32
}

// Project returns the objects that a set stands for, in the order in which they are applied: those of the primary before those of copies. Contents
// are the rendered objects of a part, nil if there are none; newest names the revision that comes first where clusters hold
// several.
func Project(set delivery.Set, contents func(delivery.Part) []*unstructured.Unstructured, newest string, o Options) ([]Projected, error) {
	var out []Projected
	places := map[string]int{}
	names := slices.DeleteFunc(set.Names(), func(name string) bool { return name == delivery.Primary })
	for _, name := range append([]string{delivery.Primary}, names...) {
		variant := set[name]
		clusters := slices.SortedFunc(maps.Keys(variant.Clusters), func(a, b string) int { return newestFirst(variant, newest, a, b) })
		for _, cluster := range clusters {
			part := variant.Clusters[cluster]
			objects, err := made(name, variant, part, contents(part), o)
			if err != nil {
				return nil, fmt.Errorf("%s of %s in cluster %q: %w", name, part.Revision.Name, cluster, err)
			}
			for _, object := range objects {
				key := object.GroupVersionKind().Group + "/" + Key(object)
				i, known := places[key]
				if !known {
					i = len(out)
					places[key] = i
					out = append(out, Projected{Variant: name, Object: object, From: shareOf(name, part, object), Clusters: map[string]Share{}})
				}
				if out[i].Variant != name {
					return nil, fmt.Errorf("%s of %s in cluster %q: %s is an object of the %s as well", name, part.Revision.Name, cluster, Key(object), out[i].Variant)
				}
				out[i].Clusters[cluster] = shareOf(name, part, object)
			}
		}
	}
	for i := range out {
		sum(&out[i])
	}
	return out, nil
}

func newestFirst(variant delivery.Variant, newest, a, b string) int {
	first := func(cluster string) bool { return variant.Clusters[cluster].Revision.Name == newest }
	switch {
	case first(a) != first(b) && first(a):
		return -1
	case first(a) != first(b):
		return 1
	case a < b:
		return -1
	}
	return 1
}

func made(name string, variant delivery.Variant, part delivery.Part, objects []*unstructured.Unstructured, o Options) ([]*unstructured.Unstructured, error) {
	if objects == nil {
		return nil, fmt.Errorf("there is no revision %s", part.Revision.Name)
	}
	if name == delivery.Primary {
		return Primary(objects, o)
	}
	return Copy(objects, name, variant, part.Replicas, o)
}

// shareOf is what a cluster has of an object. The replicas of a copy are its own.
func shareOf(name string, part delivery.Part, object *unstructured.Unstructured) Share {
	out := Share{Revision: part.Revision.Name, Target: part.Target}
	if n, has, err := unstructured.NestedInt64(object.Object, "spec", "replicas"); name != delivery.Primary && has && err == nil {
		replicas := int32(n)
		out.Replicas = &replicas
	}
	return out
}

// sum gives the workload of a copy the replicas that all clusters have together.
func sum(p *Projected) {
	total, counted := int64(0), false
	for _, share := range p.Clusters {
		if share.Replicas != nil {
			total, counted = total+int64(*share.Replicas), true
		}
	}
	if spec, is := at(p.Object.Object, "spec"); is && counted {
		spec["replicas"] = total
	}
}

// Owned returns the fields of an object that delivery or an autoscaler sets, as JSON pointers: a difference there is no drift.
func Owned(variant string, object *unstructured.Unstructured, autoscaled map[string]bool) []string {
	switch {
	case autoscaled[Key(object)], variant != delivery.Primary && object.GroupVersionKind().Group == "apps":
		return []string{"/spec/replicas"}
	}
	return nil
}
