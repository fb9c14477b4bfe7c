package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The view of a cluster is the API of the logical cluster as that cluster is to see it: what is read shows what the cluster is to hold, and
// what is written is pinned there and becomes that cluster's alone. It is served below a path of its own.
const (
	// ViewsPath is what the paths of all views begin with. The name of the cluster follows, then the path as it is without a view.
	ViewsPath = "/clusters/"
	// SubresourceView is what of a Cluster is for who has the right to VerbUse it: the view of the cluster.
	SubresourceView = "view"
	// VerbUse is the right to use the view of a cluster.
	VerbUse = "use"
	// AnnotationView is carried by an object that goes where workloads need it, and was made through the view of a cluster: it goes to that cluster
	// alone. Manifold alone writes it.
	AnnotationView = "manifold.dev/view"
	// viewAudience is what the audiences of tokens begin with that are good for the view of one cluster.
	viewAudience = "view.manifold.dev/"
)

// ViewPath is the path of the view of a cluster.
func ViewPath(cluster string) string { return ViewsPath + cluster }

// ViewAudience is the audience of tokens that are good for the view of a cluster and for nothing else.
func ViewAudience(cluster string) string { return viewAudience + cluster }

// CutViewPath takes the view of a cluster off a path. It reports false for the path of no view.
func CutViewPath(path string) (cluster, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, ViewsPath)
	if !ok {
		return "", path, false
	}
	cluster, rest, _ = strings.Cut(after, "/")
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return "", path, false
	}
	return cluster, "/" + rest, true
}
