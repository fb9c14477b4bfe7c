package objects

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Holds returns what a revision has of an object for a target. The result is shared.
type Holds func(key wanted.Key, revision identity.Revision) (*unstructured.Unstructured, error)

// comparison is an object of the logical cluster that differs: its manifest as it is compared, and the object as it would be if that were applied and as it
// is found.
type comparison struct {
	object                 wanted.Object
	present                metav1.Object
	manifest, would, found *unstructured.Unstructured
}

// reach says which clusters the differences reach. One that is held at a revision has what that says for its target, whatever is changed above, but for
// what follows the object above there too, such as its replicas. Where that cannot be told, they reach it.
func (c comparison) reach(differences []drift.Difference, holds Holds) drift.Reach {
	reaches := c.asItStands(holds)
	if c.object.Held {
		reaches = c.held(holds)
	}
	out, known := drift.Reach{}, map[identity.Revision]func(string) bool{}
	for _, cluster := range c.clusters() {
		at := revisionOf(c.object.Clusters[cluster])
		if known[at] == nil {
			known[at] = reaches(at)
		}
		for _, d := range differences {
			if known[at](d.Path) {
				out[d.Path] = append(out[d.Path], cluster)
			}
		}
	}
	return out
}

// clusters are those that have, or are to have, anything of the object, sorted. What of the primary is not held goes only where that was decided.
func (c comparison) clusters() []string {
	out := clustersOf(c.object)
	if c.object.Held || c.object.Variant != delivery.Primary {
		return out
	}
	decision := identity.DecisionOf(c.present)
	return slices.DeleteFunc(out, func(cluster string) bool { _, goes := decision[cluster]; return !goes })
}

func clustersOf(object wanted.Object) []string { return slices.Sorted(maps.Keys(object.Clusters)) }

func revisionOf(share copies.Share) identity.Revision {
	return identity.Revision{Name: share.Revision, Target: share.Target}
}

func everything(string) bool { return true }

func nothing(string) bool { return false }

// held is for an object of which each cluster has what its own revision says for its target. Both what there would be above and what is found there are
// given that content, as the cluster is: what differs then is what reaches it.
func (c comparison) held(holds Holds) func(identity.Revision) func(path string) bool {
	kind, known := projection.ForGVK(c.found.GroupVersionKind())
	would, err1 := kind.Content(c.would)
	found, err2 := kind.Content(c.found)
	if !known || err1 != nil || err2 != nil || holds == nil {
		return func(identity.Revision) func(string) bool { return everything }
	}
	return func(at identity.Revision) func(string) bool {
		manifest, err := holds(c.object.Key, at)
		if err != nil {
			return everything
		}
		content, err := kind.Content(manifest)
		if err != nil {
			return everything
		}
		wanted, err1 := given(kind, would, content)
		is, err2 := given(kind, found, content)
		if err1 != nil || err2 != nil {
			return everything
		}
		paths := map[string]bool{}
		for _, d := range drift.Compare(c.manifest, wanted, is) {
			paths[d.Path] = true
		}
		return func(path string) bool { return paths[path] }
	}
}

// given is what a cluster is given of an object above whose content is to be that of a revision.
func given(kind projection.Kind, above, content projection.Object) (*unstructured.Unstructured, error) {
	object, err := kind.As(above, content)
	if err != nil {
		return nil, err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: out}, err
}

// asItStands is for an object that clusters have as it stands above: a copy, a route, and of a custom kind where the revision says of it what it was
// applied with.
func (c comparison) asItStands(holds Holds) func(identity.Revision) func(path string) bool {
	stands := identity.ParseRevision(c.object.Manifest.GetAnnotations()[v1alpha1.AnnotationContent])
	return func(at identity.Revision) func(string) bool {
		if stands == (identity.Revision{}) || at == stands || holds == nil {
			return everything
		}
		here, err1 := holds(c.object.Key, at)
		above, err2 := holds(c.object.Key, stands)
		if err1 == nil && err2 == nil && !equality.Semantic.DeepEqual(here.Object, above.Object) {
			return nothing
		}
		return everything
	}
}

// stays reports whether an object is of a built-in kind that goes to no cluster.
func (s *Store) stays(object wanted.Object) bool {
	gk := schema.GroupKind{Group: object.Group, Kind: object.Kind}
	_, built := s.kinds[gk]
	return built && !slices.ContainsFunc(projection.Kinds(), func(k projection.Kind) bool { return k.GVK.GroupKind() == gk })
}
