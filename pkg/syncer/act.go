package syncer

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/secrets"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// errNotYet asks for another try: something that must be there first is on its way.
var errNotYet = writer.ErrNotYet

// writer returns what writes objects of a kind to a namespace of the cluster.
func (s *Syncer) writer(kind projection.Kind, namespace string) writer.Writer {
	out := writer.Writer{Kind: kind, Yields: s.claims.Yields}
	rest, err := typed.REST(s.client, kind.Resource.GroupVersion())
	if err != nil {
		panic(err) // the groups of projected kinds are all known
	}
	client := writer.REST{Client: rest, Kind: kind, Namespace: namespace}
	switch {
	case kind.Resource == namespaceResource:
		out.Client = namespaces{client, s.below}
	case secrets.Silent(identity.Key{Resource: kind.Resource, Namespace: namespace}):
		client.Answers = true
		out.Client = s.below.secrets.SilentClient(client, namespace, func(name cache.ObjectName) {
			s.queue.AddAfter(identity.Key{Resource: secretResource, Namespace: name.Namespace, Name: name.Name}, steps.ConflictRetry)
		})
	case kind.Resource == secretResource:
		out.Client = s.below.secrets.BoundClient(client, namespace)
	default:
		out.Client = client
	}
	return out
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

// orphan takes our marks off an object, which is nobody's business of ours from then on.
func (s *Syncer) orphan(ctx context.Context, kind projection.Kind, live projection.Object) error {
	if live == nil {
		return nil
	}
	if kind.Resource == namespaceResource {
		if secrets, _ := s.below.secrets.Store.IndexKeys(cache.NamespaceIndex, live.GetName()); len(secrets) > 0 || !s.below.secrets.Seen(live.GetName()) {
			return errNotYet // they are let go of first, as long as they can be seen
		}
		s.below.secrets.Leave(live.GetName())
		if err := s.below.secrets.Unbind(ctx, live.GetName()); err != nil {
			return err
		}
	}
	if err := s.writer(kind, live.GetNamespace()).Orphan(ctx, live); err != nil {
		return err
	}
	if secrets.Silent(identity.KeyOf(kind, live)) {
		s.below.secrets.Gone(live)
	}
	return nil
}

// letGo leaves an object to a cluster that is removed with all that it has, but for what leads to the pods of others: nobody tells it any more
// where these are.
func (s *Syncer) letGo(ctx context.Context, l planning.Look) error {
	above, known := l.Above.(*discoveryv1.EndpointSlice)
	if live, ok := l.Live.(*discoveryv1.EndpointSlice); ok && live.Labels[discoveryv1.LabelManagedBy] == v1alpha1.EndpointSlicesManager &&
		(!known || projection.MadeOfPods(above)) {
		return s.writer(l.Kind, live.Namespace).Delete(ctx, live, writer.Deletion{})
	}
	return s.orphan(ctx, l.Kind, l.Live)
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
	desired, err := kind.Project(above, projection.Part{PodWebhooks: s.planner.PodWebhooks(above)}, s.target)
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
