// Package typed reaches objects of a kind that is only known at run time through client-go's typed clients, which speak protobuf where
// a dynamic client would not. Objects of custom kinds are reached in the same way, by a dynamic client.
package typed

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Object is a typed Kubernetes object, such as *appsv1.Deployment.
type Object interface {
	metav1.Object
	runtime.Object
}

// Client reads and changes objects of one kind in one namespace.
type Client interface {
	UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error)
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error)
	// List returns a list of the kind, whose items meta.ExtractList knows how to find.
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// Custom is the client of a custom kind.
type Custom struct {
	Dynamic dynamic.ResourceInterface
	// Whole tells that the kind has no status subresource, so that a status is written with all the rest.
	Whole bool
}

// UpdateStatus implements Client.
func (c Custom) UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error) {
	if c.Whole {
		return c.Dynamic.Update(ctx, obj.(*unstructured.Unstructured), options)
	}
	return c.Dynamic.UpdateStatus(ctx, obj.(*unstructured.Unstructured), options)
}

// Patch implements Client.
func (c Custom) Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error) {
	return c.Dynamic.Patch(ctx, name, patch, data, options)
}

// List implements Client.
func (c Custom) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return c.Dynamic.List(ctx, options)
}
