package syncer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// errNotYet asks for another try: something that must be there first is on its way.
var errNotYet = writer.ErrNotYet

// writer returns what writes objects of a kind to a namespace of the cluster.
func (s *Syncer) writer(kind projection.Kind, namespace string) writer.Writer {
	out := writer.Writer{Kind: kind, Yields: s.claims.Yields}
	client := writer.REST{Client: s.rest(kind), Kind: kind, Namespace: namespace}
	switch {
	case kind.Resource == namespaceResource:
		out.Client = namespaces{client, s.below}
	case silentSecret(identity.Key{Resource: kind.Resource, Namespace: namespace}):
		client.Answers = true
		out.Client = silentSecrets{client, s, namespace}
	case kind.Resource == secretResource:
		out.Client = boundSecrets{client, s.below.secrets, namespace}
	default:
		out.Client = client
	}
	return out
}

// rest sends requests about objects of a projected kind, whose groups are all known.
func (s *Syncer) rest(kind projection.Kind) rest.Interface {
	client, err := typed.REST(s.client, kind.Resource.Group)
	if err != nil {
		panic(err)
	}
	return client
}

// namespaces are those of a cluster. One is ours from the moment at which it is made, whatever the watch shows.
type namespaces struct {
	writer.Client
	below *below
}

// Create implements writer.Client.
func (c namespaces) Create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	c.below.Expect(desired.GetName(), true)
	made, err := c.Client.Create(ctx, desired)
	if err != nil {
		c.below.Expect(desired.GetName(), false)
	}
	return made, err
}

// boundSecrets are those of a namespace of ours, in which the right to read them is taken when it is needed.
type boundSecrets struct {
	writer.Client
	secrets   *secrets
	namespace string
}

// Get implements writer.Client.
func (c boundSecrets) Get(ctx context.Context, name string) (projection.Object, error) {
	live, err := c.Client.Get(ctx, name)
	if apierrors.IsForbidden(err) {
		c.secrets.follow(c.namespace, true)
		return nil, errNotYet // the right to read it is on its way
	}
	return live, err
}

// silentSecrets are those of a shared namespace. No watch shows what comes of a write, so the answer does.
type silentSecrets struct {
	writer.Client
	syncer    *Syncer
	namespace string
}

// Get implements writer.Client.
func (c silentSecrets) Get(ctx context.Context, name string) (projection.Object, error) {
	live, err := c.syncer.below.secrets.read(ctx, cache.NewObjectName(c.namespace, name))
	if err != nil || live.Name == "" {
		return nil, err
	}
	return live, nil
}

// Create implements writer.Client.
func (c silentSecrets) Create(ctx context.Context, desired projection.Object) (projection.Object, error) {
	made, err := c.Client.Create(ctx, desired)
	return c.note(desired.GetName(), made, err)
}

// Patch implements writer.Client.
func (c silentSecrets) Patch(ctx context.Context, name string, of types.PatchType, patch []byte) (projection.Object, error) {
	made, err := c.Client.Patch(ctx, name, of, patch)
	return c.note(name, made, err)
}

func (c silentSecrets) note(name string, made projection.Object, err error) (projection.Object, error) {
	if err != nil {
		c.syncer.below.secrets.unsure(cache.NewObjectName(c.namespace, name))
		return nil, err
	}
	c.syncer.below.secrets.note(made.(*corev1.Secret))
	return made, nil
}

// Delete implements writer.Client. A Secret that something holds is to be looked at again.
func (c silentSecrets) Delete(ctx context.Context, live projection.Object, options metav1.DeleteOptions) error {
	err := c.Client.Delete(ctx, live, options)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case len(live.GetFinalizers()) == 0:
		c.syncer.below.secrets.gone(live)
	default:
		c.syncer.below.secrets.unsure(cache.MetaObjectToName(live))
		c.syncer.queue.AddAfter(identity.Key{Resource: secretResource, Namespace: live.GetNamespace(), Name: live.GetName()}, steps.ConflictRetry)
	}
	return err
}

// orphan takes our marks off an object, which is nobody's business of ours from then on.
func (s *Syncer) orphan(ctx context.Context, kind projection.Kind, live projection.Object) error {
	if live == nil {
		return nil
	}
	if kind.Resource == namespaceResource {
		if secrets, _ := s.below.secrets.store.IndexKeys(cache.NamespaceIndex, live.GetName()); len(secrets) > 0 || !s.below.secrets.seen(live.GetName()) {
			return errNotYet // they are let go of first, as long as they can be seen
		}
		s.below.secrets.leave(live.GetName())
		if err := s.below.secrets.unbind(ctx, live.GetName()); err != nil {
			return err
		}
	}
	if err := s.writer(kind, live.GetNamespace()).Orphan(ctx, live); err != nil {
		return err
	}
	if silentSecret(identity.KeyOf(kind, live)) {
		s.below.secrets.gone(live)
	}
	return nil
}

// EnsureNamespace sees to it that a namespace of ours exists before something is put into it. The error tells what is in the way, or passes.
func (s *Syncer) EnsureNamespace(ctx context.Context, name string) error {
	if name == "" || projection.NamespaceShared(name) {
		return nil
	}
	key := identity.Key{Resource: namespaceResource, Name: name}
	if live := s.below.Get(key); live != nil {
		if live.GetDeletionTimestamp() != nil {
			return fmt.Errorf("namespace %q is being deleted in the cluster: %w", name, errNotYet)
		}
		return nil
	}
	kind, _ := projection.ForResource(namespaceResource)
	above := s.Upstream.Get(key)
	if above == nil || above.GetDeletionTimestamp() != nil {
		return errNotYet
	}
	desired, err := kind.Project(above, projection.Part{PodWebhooks: s.podWebhooks(above)}, s.target)
	if err != nil {
		return err
	}
	_, err = s.writer(kind, "").Act(ctx, kind.Plan(desired, nil), desired, nil)
	return err
}

// EnsureNamespace has the syncer of a cluster see to it that a namespace of ours exists there.
func (u *Upstream) EnsureNamespace(ctx context.Context, cluster, name string) error {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return errNotYet
	}
	return s.EnsureNamespace(ctx, name)
}

func hashOf(obj projection.Object) string { return obj.GetAnnotations()[v1alpha1.AnnotationProjection] }
