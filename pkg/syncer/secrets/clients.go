package secrets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// BoundClient returns what writes Secrets to a namespace of ours.
func (w *Watch) BoundClient(client writer.Client, namespace string) writer.Client {
	return boundClient{client, w, namespace}
}

// SilentClient returns what writes Secrets to a shared namespace, by a client that answers with what comes of it. Again has one looked at again.
func (w *Watch) SilentClient(client writer.Client, namespace string, again func(cache.ObjectName)) writer.Client {
	return silentClient{client, w, namespace, again}
}

// boundClient writes those of a namespace of ours, in which the right to read them is taken when it is needed.
type boundClient struct {
	writer.Client
	secrets   *Watch
	namespace string
}

// Get implements writer.Client.
func (c boundClient) Get(ctx context.Context, name string) (projection.Object, error) {
	live, err := c.Client.Get(ctx, name)
	if apierrors.IsForbidden(err) {
		c.secrets.Follow(c.namespace, true)
		return nil, writer.ErrNotYet // the right to read it is on its way
	}
	return live, err
}

// silentClient writes those of a shared namespace. No watch shows what comes of a write, so the answer does.
type silentClient struct {
	writer.Client
	secrets   *Watch
	namespace string
	// again has a Secret looked at again that somebody holds.
	again func(name cache.ObjectName)
}

// Get implements writer.Client.
func (c silentClient) Get(ctx context.Context, name string) (projection.Object, error) {
	live, err := c.secrets.read(ctx, cache.NewObjectName(c.namespace, name))
	if err != nil || live.Name == "" {
		return nil, err
	}
	return live, nil
}

// Create implements writer.Client.
func (c silentClient) Create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	made, err := c.Client.Create(ctx, desired)
	return c.note(desired.GetName(), made, err)
}

// Patch implements writer.Client.
func (c silentClient) Patch(ctx context.Context, name string, of types.PatchType, patch []byte) (projection.Object, error) {
	made, err := c.Client.Patch(ctx, name, of, patch)
	return c.note(name, made, err)
}

func (c silentClient) note(name string, made projection.Object, err error) (projection.Object, error) {
	if err != nil {
		c.secrets.unsure(cache.NewObjectName(c.namespace, name))
		return nil, err
	}
	c.secrets.note(made.(*corev1.Secret))
	return made, nil
}

// Delete implements writer.Client. A Secret that something holds is to be looked at again.
func (c silentClient) Delete(ctx context.Context, live projection.Object, options metav1.DeleteOptions) error {
	err := c.Client.Delete(ctx, live, options)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case len(live.GetFinalizers()) == 0:
		c.secrets.Gone(live)
	default:
		c.secrets.unsure(cache.MetaObjectToName(live))
		c.again(cache.MetaObjectToName(live))
	}
	return err
}
