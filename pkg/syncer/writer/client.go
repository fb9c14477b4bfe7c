package writer

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Client sends requests about the objects of a kind in one namespace, if the kind has any. What a write returns may be nil without an error,
// where a watch shows what came of it.
type Client interface {
	// Get reads an object past the caches. It returns nil if there is none.
	Get(ctx context.Context, name string) (projection.Object, error)
	Create(ctx context.Context, desired projection.Object) (projection.Object, error)
	// Patch changes an object. An apply wins over the fields of others.
	Patch(ctx context.Context, name string, of types.PatchType, patch []byte) (projection.Object, error)
	Delete(ctx context.Context, live projection.Object, options metav1.DeleteOptions) error
}

// REST is the Client of a built-in kind.
type REST struct {
	Client    rest.Interface
	Kind      projection.Kind
	Namespace string
	// Answers has writes return what came of them. Otherwise the answers are not decoded.
	Answers bool
}

// about sends a request to where the objects are.
func (c REST) about(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(c.Namespace, c.Kind.Namespaced).Resource(c.Kind.Resource.Resource)
}

// Get implements Client.
func (c REST) Get(ctx context.Context, name string) (projection.Object, error) {
	out := c.Kind.New()
	return found(out, c.about(c.Client.Get()).Name(name).Do(ctx).Into(out))
}

// Create implements Client.
func (c REST) Create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	return c.answer(c.about(c.Client.Post()).
		VersionedParams(&metav1.CreateOptions{FieldManager: v1alpha1.FieldManager}, scheme.ParameterCodec).Body(desired).Do(ctx))
}

// Patch implements Client.
func (c REST) Patch(ctx context.Context, name string, of types.PatchType, patch []byte) (projection.Object, error) {
	options := patchOptions(of)
	return c.answer(c.about(c.Client.Patch(of)).Name(name).VersionedParams(&options, scheme.ParameterCodec).Body(patch).Do(ctx))
}

// Delete implements Client.
func (c REST) Delete(ctx context.Context, live projection.Object, options metav1.DeleteOptions) error {
	return answered(c.about(c.Client.Delete()).Name(live.GetName()).Body(&options).Do(ctx))
}

func (c REST) answer(result rest.Result) (projection.Object, error) {
	if !c.Answers {
		return nil, answered(result)
	}
	out := c.Kind.New()
	if err := result.Into(out); err != nil {
		return nil, err
	}
	return out, nil
}

// protobuf is what answers begin with that are in Kubernetes' encoding by that.
var protobuf = []byte("k8s\x00")

// mostShown is how much of an answer its error shows, in bytes.
const mostShown = 80

// answered returns why a write has failed. An answer that is not decoded is at least one of an API server: what stands before that, such as a gateway that asks
// people to log in, says that all is well and has done nothing, and no watch would ever show that.
func answered(result rest.Result) error {
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if said := bytes.TrimSpace(body); !bytes.HasPrefix(said, []byte("{")) && !bytes.HasPrefix(body, protobuf) {
		return fmt.Errorf("the answer is none of an API server, so it is not known what was written: %q", text.Line(string(said[:min(len(said), mostShown)]), mostShown))
	}
	return nil
}

// Dynamic is the Client of a custom kind. Its writes return what came of them.
type Dynamic struct{ dynamic.ResourceInterface }

// Get implements Client.
func (c Dynamic) Get(ctx context.Context, name string) (projection.Object, error) {
	out, err := c.ResourceInterface.Get(ctx, name, metav1.GetOptions{})
	return found(out, err)
}

// Create implements Client.
func (c Dynamic) Create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	return c.ResourceInterface.Create(ctx, desired.(*unstructured.Unstructured), metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
}

// Patch implements Client.
func (c Dynamic) Patch(ctx context.Context, name string, of types.PatchType, patch []byte) (projection.Object, error) {
	return c.ResourceInterface.Patch(ctx, name, of, patch, patchOptions(of))
}

// Delete implements Client.
func (c Dynamic) Delete(ctx context.Context, live projection.Object, options metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, live.GetName(), options)
}

func patchOptions(of types.PatchType) metav1.PatchOptions {
	options := metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}
	if of == types.ApplyPatchType {
		options.Force = ptr.To(true)
	}
	return options
}

// found returns nothing for what is not there.
func found(obj projection.Object, err error) (projection.Object, error) {
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return obj, nil
}
