package copies

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
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

// Revisions are what variants are made of.
type Revisions struct {
	// Contents are the rendered objects of a part, nil if there are none.
	Contents func(delivery.Part) []*unstructured.Unstructured
	// Targets are those that a revision has manifests for, in its order.
	Targets func(delivery.Revision) []string
	// Newest names the one that comes first where clusters hold several.
	Newest string
}

// Project returns the objects that a set stands for, in the order in which they are applied: those of the primary before those of copies.
func Project(set delivery.Set, from Revisions, o Options) ([]Projected, error) {
	var out []Projected
	places := map[string]int{}
	names := slices.DeleteFunc(set.Names(), func(name string) bool { return name == delivery.Primary })
	for _, name := range append([]string{delivery.Primary}, names...) {
		variant := set[name]
		clusters := slices.SortedFunc(maps.Keys(variant.Clusters), func(a, b string) int { return newestFirst(variant, from.Newest, a, b) })
		for _, cluster := range clusters {
			part := variant.Clusters[cluster]
			objects, err := made(name, variant, part, from, o)
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

func made(name string, variant delivery.Variant, part delivery.Part, from Revisions, o Options) ([]*unstructured.Unstructured, error) {
	objects := from.Contents(part)
	if objects == nil {
		return nil, fmt.Errorf("there is no revision %s", part.Revision.Name)
	}
	if name == delivery.Primary {
		return Primary(objects, o)
	}
	out, err := Copy(objects, name, variant, "", part.Replicas, o)
	if err != nil || from.shared(name, variant, part, out, o) {
		return out, err
	}
	return Copy(objects, name, variant, part.Target, part.Replicas, o)
}

// shared reports whether the copies of a part may have the names that end in no target. These belong to the first target of the revision that there is
// something to copy for, and to all of which the same is made. That depends on the revision alone, so nothing is called otherwise when clusters come and go.
func (r Revisions) shared(name string, variant delivery.Variant, part delivery.Part, made []*unstructured.Unstructured, o Options) bool {
	for _, target := range r.Targets(part.Revision) {
		if target == part.Target {
			return true
		}
		objects := r.Contents(delivery.Part{Revision: part.Revision, Target: target})
		if first, err := Copy(objects, name, variant, "", nil, o); err == nil {
			return slices.EqualFunc(ran(first), ran(made), func(a, b *unstructured.Unstructured) bool { return equality.Semantic.DeepEqual(a.Object, b.Object) })
		}
	}
	return true
}

// ran are the objects of a copy that its pods are made of, without the numbers of these.
func ran(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Service" {
			continue
		}
		object = object.DeepCopy()
		unstructured.RemoveNestedField(object.Object, "spec", "replicas")
		out = append(out, object)
	}
	return out
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
