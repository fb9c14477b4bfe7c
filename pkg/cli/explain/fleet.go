package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
)

// fleetOf returns what asks the server how a workload stands at this moment.
func fleetOf(client rest.Interface) func(ctx context.Context, w identity.Workload) ([]byte, error) {
	return func(ctx context.Context, w identity.Workload) ([]byte, error) {
		return client.Get().AbsPath(fleetPath(w)).Do(ctx).Raw()
	}
}

// fleetPath is where the server tells how a workload stands.
func fleetPath(w identity.Workload) string {
	resource, root := w.Kind.Resource, "/api"
	if resource.Group != "" {
		root = path.Join("/apis", resource.Group)
	}
	return path.Join(root, resource.Version, "namespaces", w.GetNamespace(), resource.Resource, w.GetName(), manifoldv1alpha1.SubresourceFleet)
}

// standing returns how a workload stands, nil if the user may not know, or the server is an older one that does not tell.
func (g gatherer) standing(ctx context.Context, w identity.Workload) (*moves.Standing, error) {
	if g.fleet == nil {
		return nil, nil
	}
	body, err := g.fleet(ctx, w)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read how it stands in the clusters: %w", err)
	}
	out := &moves.Standing{}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("read how it stands in the clusters: %w", err)
	}
	return out, nil
}
