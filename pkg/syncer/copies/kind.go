package copies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Key names an object of a custom kind.
type Key struct {
	Resource        schema.GroupResource
	Namespace, Name string
}

// String writes the key for logs.
func (k Key) String() string { return k.Resource.String() + " " + k.Namespace + "/" + k.Name }

// KeyOf names an object by its resource.
func KeyOf(resource schema.GroupResource, name cache.ObjectName) Key {
	return Key{Resource: resource, Namespace: name.Namespace, Name: name.Name}
}

// Kind is a kind of custom resources as the logical cluster serves it.
type Kind struct {
	Resource schema.GroupResource
	Name     string
	// Versions are those that are served: the one that is stored first, then the newest.
	Versions []string
	// Statuses tells by version whether the status is a subresource.
	Statuses map[string]bool
	// Paths say where its objects have what their pods are made of; nil if nobody does.
	Paths *projection.PodPaths
}

// KindOf returns the kind that a definition makes, false if its objects are not in namespaces or not served.
func KindOf(crd *apiextensionsv1.CustomResourceDefinition) (Kind, bool) {
	if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || !established(crd) {
		return Kind{}, false
	}
	out := Kind{
		Resource: schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural},
		Name:     crd.Status.AcceptedNames.Kind,
		Statuses: map[string]bool{},
	}
	stored := ""
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		out.Versions = append(out.Versions, v.Name)
		out.Statuses[v.Name] = v.Subresources != nil && v.Subresources.Status != nil
		if v.Storage {
			stored = v.Name
		}
	}
	slices.SortFunc(out.Versions, func(a, b string) int {
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
	return out, len(out.Versions) > 0
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// GVK is the kind in its first version.
func (k Kind) GVK() schema.GroupVersionKind { return k.In(k.Versions[0]) }

// In is the kind in a version.
func (k Kind) In(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Resource.Group, Version: version, Kind: k.Name}
}

// ListedAs is the kind as policies list it.
func (k Kind) ListedAs() string { return k.Name + "." + k.Resource.Group }

// Row is how objects of the kind are projected, in a version.
func (k Kind) Row(version string) projection.Kind {
	return projection.Custom(k.In(version), k.Resource.Resource, k.Paths)
}

// Watched is the version in which the metadata is watched: the newest, which the garbage collector watches as well.
func (k Kind) Watched() schema.GroupVersionResource {
	newest := slices.MaxFunc(k.Versions, version.CompareKubeAwareVersionStrings)
	return k.Resource.WithVersion(newest)
}

// servedBy returns the first version that a cluster serves as well, by its list of kinds. An empty list means that it is not known yet.
func (k Kind) servedBy(served []string) (version string, ok bool) {
	if len(served) == 0 {
		return k.Versions[0], true
	}
	for _, v := range k.Versions {
		if slices.Contains(served, placement.KindName(k.In(v))) {
			return v, true
		}
	}
	return "", false
}

// Same reports whether two descriptions of a kind say the same.
func (k Kind) Same(other Kind) bool {
	if k.Name != other.Name || !slices.Equal(k.Versions, other.Versions) || !k.Paths.Same(other.Paths) {
		return false
	}
	for _, v := range k.Versions {
		if k.Statuses[v] != other.Statuses[v] {
			return false
		}
	}
	return true
}

// Reference is what events about an object of the kind name.
func (k Kind) Reference(o *metav1.PartialObjectMetadata) *corev1.ObjectReference {
	version, name := k.GVK().ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}
