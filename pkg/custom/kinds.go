package custom

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Key names an object of a custom kind.
type Key struct {
	Resource        schema.GroupResource
	Namespace, Name string
}

// String writes the key for logs.
func (k Key) String() string { return k.Resource.String() + " " + k.Namespace + "/" + k.Name }

// kind is a kind of custom resources as the logical cluster serves it.
type kind struct {
	resource schema.GroupResource
	name     string
	// versions are those that are served: the one that is stored first, then the newest.
	versions []string
	// statuses tells by version whether the status is a subresource.
	statuses map[string]bool
}

// kindOf returns the kind that a definition makes, false if its objects are not in namespaces or not served.
func kindOf(crd *apiextensionsv1.CustomResourceDefinition) (kind, bool) {
	if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || !established(crd) {
		return kind{}, false
	}
	out := kind{
		resource: schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural},
		name:     crd.Status.AcceptedNames.Kind,
		statuses: map[string]bool{},
	}
	stored := ""
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		out.versions = append(out.versions, v.Name)
		out.statuses[v.Name] = v.Subresources != nil && v.Subresources.Status != nil
		if v.Storage {
			stored = v.Name
		}
	}
	slices.SortFunc(out.versions, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == stored:
			return -1
		case b == stored:
			return 1
		}
		return version.CompareKubeAwareVersionStrings(b, a)
	})
	return out, len(out.versions) > 0
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// gvk is the kind in its first version.
func (k kind) gvk() schema.GroupVersionKind { return k.in(k.versions[0]) }

func (k kind) in(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.resource.Group, Version: version, Kind: k.name}
}

// watched is the version in which the metadata is watched: the newest, which the garbage collector watches as well.
func (k kind) watched() schema.GroupVersionResource {
	newest := slices.MaxFunc(k.versions, version.CompareKubeAwareVersionStrings)
	return k.resource.WithVersion(newest)
}

// servedBy returns the first version that a cluster serves as well, by its list of kinds. An empty list means that it is not known yet.
func (k kind) servedBy(served []string) (version string, ok bool) {
	if len(served) == 0 {
		return k.versions[0], true
	}
	for _, v := range k.versions {
		if slices.Contains(served, placement.KindName(k.in(v))) {
			return v, true
		}
	}
	return "", false
}

// same reports whether two descriptions of a kind say the same.
func (k kind) same(other kind) bool {
	if k.name != other.name || !slices.Equal(k.versions, other.versions) {
		return false
	}
	for _, v := range k.versions {
		if k.statuses[v] != other.statuses[v] {
			return false
		}
	}
	return true
}
