package metrics

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics"
)

// storage is what the API server asks of a resource that is read, and not watched.
type storage interface {
	rest.Storage
	rest.Scoper
	rest.Getter
	rest.Lister
	rest.SingularNameProvider
}

var (
	_ storage = &nodeREST{}
	_ storage = &podREST{}
)

// common is what the metrics of nodes have in common with those of pods.
type common struct{}

// Destroy has nothing to release.
func (common) Destroy() {}

// GetSingularName is empty, as it is for metrics-server: "node" and "pod" are taken by nodes and pods themselves.
func (common) GetSingularName() string { return "" }

// ConvertToTable shows metrics as rows.
func (common) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return toTable(object, options)
}

// named selects the object of a name.
func named(name string) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
}

// only returns the item of a list of those of one name. An empty list is an error that says what is not found.
func only[T any](items []T, resource, name string) (*T, error) {
	if len(items) == 0 {
		return nil, apierrors.NewNotFound(metrics.Resource(resource), name)
	}
	return &items[0], nil
}
