package workloads

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"

	"github.com/manifold-dev/manifold/internal/imageref"
)

// query is what somebody asks for.
type query struct {
	// namespace is empty for all that the caller may see.
	namespace string
	labels    labels.Selector
	// selected are the values of fields.
	selected map[string]string
	limit    int
	from     position
}

// position is where a page begins: after an object of a source.
type position struct {
	Source int    `json:"s"`
	After  string `json:"a"`
}

// token is what a client asks for the next page with.
func (p position) token() string {
	said, _ := json.Marshal(p) // a number and a text
	return base64.RawURLEncoding.EncodeToString(said)
}

var errToken = errors.New("continue is no token of this list: begin again without it")

func parsePosition(token string) (position, error) {
	var out position
	if token == "" {
		return out, nil
	}
	said, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(said, &out) != nil || out.Source < 0 {
		return position{}, errToken
	}
	return out, nil
}

// selectable are the fields that can be selected by.
var selectable = []string{v1alpha1.FieldChart, v1alpha1.FieldImage, v1alpha1.FieldCluster, v1alpha1.FieldKind, metav1.ObjectNameField, "metadata.namespace"}

// Selectable lets the fields through that versions can be selected by.
func Selectable(label, value string) (string, string, error) {
	if !slices.Contains(selectable, label) {
		return "", "", fmt.Errorf("%q is none of %s", label, strings.Join(selectable, ", "))
	}
	return label, value, nil
}

func queryOf(namespace string, options *metainternalversion.ListOptions) (query, error) {
	out := query{namespace: namespace, labels: labels.Everything(), selected: map[string]string{}, limit: mostItems}
	if options == nil {
		return out, nil
	}
	if options.LabelSelector != nil {
		out.labels = options.LabelSelector
	}
	if options.Limit > 0 {
		out.limit = int(min(options.Limit, mostItems))
	}
	var err error
	if out.from, err = parsePosition(options.Continue); err != nil {
		return query{}, err
	}
	if options.FieldSelector == nil {
		return out, nil
	}
	for _, r := range options.FieldSelector.Requirements() {
		if err := out.require(r); err != nil {
			return query{}, err
		}
	}
	return out, nil
}

func (q *query) require(r fields.Requirement) error {
	if _, _, err := Selectable(r.Field, r.Value); err != nil {
		return fmt.Errorf("fieldSelector: %w", err)
	}
	if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
		return fmt.Errorf("fieldSelector: %s can be selected by = alone", r.Field)
	}
	if before, twice := q.selected[r.Field]; twice && before != r.Value {
		return fmt.Errorf("fieldSelector: %s is selected by two values", r.Field)
	}
	q.selected[r.Field] = r.Value
	return nil
}

// kinds reports whether objects of any of some kinds may be asked for.
func (q *query) kinds(of []string) bool {
	kind, selected := q.selected[v1alpha1.FieldKind]
	return !selected || slices.ContainsFunc(of, func(k string) bool { return strings.EqualFold(k, kind) })
}

// fits reports whether a version is asked for, and leaves of its clusters those that are.
func (q *query) fits(v *v1alpha1.WorkloadVersion) bool {
	is := func(field, value string) bool {
		wanted, selected := q.selected[field]
		return !selected || wanted == value
	}
	if !is(v1alpha1.FieldChart, v.Chart) || !is(metav1.ObjectNameField, v.Name) || !is("metadata.namespace", v.Namespace) || !q.kinds([]string{v.Workload.Kind}) {
		return false
	}
	image, byImage := q.selected[v1alpha1.FieldImage]
	cluster, byCluster := q.selected[v1alpha1.FieldCluster]
	v.Clusters = slices.DeleteFunc(v.Clusters, func(c v1alpha1.ClusterVersion) bool {
		return byCluster && c.Cluster != cluster ||
			byImage && !slices.ContainsFunc(c.Images, func(has string) bool { return isImage(has, image) })
	})
	return len(v.Clusters) > 0
}

// isImage reports whether an image is the one that somebody names, with or without its tag, its registry and the folders there.
func isImage(image, named string) bool {
	name, _, _ := strings.Cut(image, "@")
	return slices.ContainsFunc([]string{image, name, imageref.Parse(image).Name}, func(is string) bool { return is == named || strings.HasSuffix(is, "/"+named) })
}
