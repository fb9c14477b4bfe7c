package render

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a way to make objects of files.
type Kind string

// The ways.
const (
	Plain     Kind = "Plain"
	Kustomize Kind = "Kustomize"
	Helm      Kind = "Helm"
)

// Options say how an application is rendered.
type Options struct {
	// Kind is the way. Unset, the files tell it: a kustomization comes first, a chart second, plain manifests last.
	Kind Kind
	// Namespace is that of the application. Objects that name none get it.
	Namespace string
	// OtherNamespaces allows objects to name other namespaces.
	OtherNamespaces bool
	// ClusterScoped are the kinds that are not in a namespace, beside those that Kubernetes has and those whose definitions are rendered too.
	ClusterScoped []schema.GroupKind
	// Manifests are the files that are read of plain manifests, from the folder of the application. Unset, they are all in that folder.
	Manifests []string
	// Recurse also reads plain manifests in the folders below.
	Recurse bool
	// Chart says how a Helm chart is rendered.
	Chart Chart
	// Patches change objects after they have been rendered, one after the other.
	Patches []Patch
	// Limits bound all of it.
	Limits Limits
}

// Chart says how a Helm chart is rendered.
type Chart struct {
	// Path is the chart's folder, from the folder of the application. Unset, it is that folder.
	Path string
	// Release is the name of the release.
	Release string
	// ValuesFiles are files of values, from the folder of the application, later ones over earlier ones. Values, a document
	// of YAML or JSON, comes over them all.
	ValuesFiles []string
	Values      []byte
	// KubeVersion is the version of Kubernetes that templates see, and APIVersions what it serves beside its own.
	KubeVersion string
	APIVersions []string
	// SkipCRDs leaves out the chart's folder crds.
	SkipCRDs bool
}

// Patch is a strategic merge patch or a JSON patch (RFC 6902), as YAML or JSON.
type Patch struct {
	Patch string
	// Target selects the objects; names and namespaces are regular expressions. It may be unset if the patch names its object.
	Target *Target
}

// Target selects objects.
type Target struct {
	Group, Version, Kind, Name, Namespace, LabelSelector string
}

// Limits bound a rendering. Zero stands for the default.
type Limits struct {
	// Files bounds the number of files that are read, 5,000; Input what they hold together, in bytes, 32 MiB; File each of them, 8 MiB.
	Files       int
	Input, File int64
	// Objects bounds the number of objects, 10,000, and Output what they take as JSON, in bytes, 32 MiB.
	Objects int
	Output  int64
}

func (l Limits) withDefaults() Limits {
	set(&l.Files, 5_000)
	set(&l.Input, 32<<20)
	set(&l.File, 8<<20)
	set(&l.Objects, 10_000)
	set(&l.Output, 32<<20)
	return l
}

func set[T int | int64](to *T, value T) {
	if *to <= 0 {
		*to = value
	}
}

// Result is what an application renders to.
type Result struct {
	Kind Kind
	// Objects are in the order in which they are to be applied, which is always the same for the same objects.
	Objects []*unstructured.Unstructured
	// ClusterScoped names those that are not in a namespace. Whether the application may have them is for the caller to say.
	ClusterScoped []ObjectName
	// Images are those that containers name, sorted, each once for a container.
	Images []Image
	// Chart is the name and version of the chart, if it is one.
	Chart string
	// Warnings name what has been left out, and what is odd.
	Warnings []string
}

// ObjectName names an object.
type ObjectName struct {
	Group, Kind, Namespace, Name string
}

// String returns the name as messages have it.
func (n ObjectName) String() string {
	kind := n.Kind
	if n.Group != "" {
		kind += "." + n.Group
	}
	if n.Namespace != "" {
		return kind + " " + n.Namespace + "/" + n.Name
	}
	return kind + " " + n.Name
}

// NameOf returns the name of an object.
func NameOf(object *unstructured.Unstructured) ObjectName {
	return ObjectName{Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// What is wrong with files, for those who act on it.
var (
	// ErrInvalid says that the files do not render, and will not until they change.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge says that they exceed a bound.
	ErrTooLarge = errors.New("too large")
)
