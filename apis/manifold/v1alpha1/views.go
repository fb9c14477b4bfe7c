package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	// AnnotationView is carried by an object that goes where workloads need it, and was made through the views of clusters: it goes to these clusters
	// alone. It names them, separated by commas. Manifold alone writes it.
	AnnotationView = "manifold.dev/view"
	// AnnotationViews is carried by an object that several clusters hold, each as it was written through its own view; see Views. Manifold alone
	// writes it.
	AnnotationViews = "manifold.dev/views"
	// AnnotationViewContents has what those of them hold that hold something else than what the object says: by the names that AnnotationViews gives,
	// compressed. Manifold alone writes it.
	AnnotationViewContents = "manifold.dev/view-contents"
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

// View is what one cluster holds of an object that several clusters hold, each as it was written through its own view.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type View struct {
	Cluster string `json:"cluster"`
	// Replicas is how many the cluster is to run, nil for what has no number of replicas.
	Replicas *int32 `json:"replicas,omitempty"`
	// Content names what the cluster holds in AnnotationViewContents; "" if it holds what the object says.
	Content string `json:"content,omitempty"`
}

// Views is the value of AnnotationViews, in the order in which the clusters came. The object says what the first one holds, but for the number of
// replicas, which is that of all together.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Views []View

// ParseViews reads what Views.String wrote.
func ParseViews(value string) (Views, error) {
	var out Views
	if err := json.Unmarshal([]byte(value), &out); err != nil {
		return nil, fmt.Errorf("parse the views %.100q: %w", value, err)
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("parse the views %.100q: %w", value, errFewViews)
	}
	seen := map[string]bool{}
	for i, view := range out {
		switch {
		case len(validation.IsDNS1123Label(view.Cluster)) > 0:
			return nil, fmt.Errorf("parse the views: entry %d: %.100q is not a cluster name", i+1, view.Cluster)
		case seen[view.Cluster]:
			return nil, fmt.Errorf("parse the views: entry %d: cluster %q is there twice", i+1, view.Cluster)
		case (view.Content == "") != (i == 0):
			return nil, fmt.Errorf("parse the views: entry %d: the first cluster alone holds what the object says", i+1)
		case view.Replicas != nil && *view.Replicas < 0:
			return nil, fmt.Errorf("parse the views: entry %d: cluster %q has %d replicas", i+1, view.Cluster, *view.Replicas)
		}
		seen[view.Cluster] = true
	}
	return out, nil
}

var errFewViews = errors.New("fewer than two clusters hold something of their own")

// String writes the views as ParseViews reads them.
func (v Views) String() string {
	data, err := json.Marshal([]View(v))
	if err != nil {
		return "" // strings and numbers always encode
	}
	return string(data)
}

// Of returns the view of a cluster, false if it has none.
func (v Views) Of(cluster string) (View, bool) {
	if i := v.Index(cluster); i >= 0 {
		return v[i], true
	}
	return View{}, false
}

// Index is where the view of a cluster is, -1 if it has none.
func (v Views) Index(cluster string) int {
	return slices.IndexFunc(v, func(view View) bool { return view.Cluster == cluster })
}

// Clusters are the names of the clusters, sorted.
func (v Views) Clusters() []string {
	out := make([]string, 0, len(v))
	for _, view := range v {
		out = append(out, view.Cluster)
	}
	slices.Sort(out)
	return out
}
