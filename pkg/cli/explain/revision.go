package explain

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	versions "github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// at returns a workload as a cluster is to hold it, at the revision that its share names. It reads that revision with its chunks, and no Secrets, in
// which no workload is kept. Defaults are not added: those are for the API server of the cluster as well.
func (g gatherer) at(ctx context.Context, kind projection.Kind, above projection.Object, cluster string) (versions.Version, error) {
	revision := identity.RevisionIn(above, cluster)
	if revision == (identity.Revision{}) {
		return versions.Version{Object: above}, nil
	}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	revisions, secrets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace), cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	names := []string{revision.Name}
	if revision.OfView() {
		names = nil // the object carries it itself
	}
	for i := 0; i < len(names); i++ {
		found, err := g.manifold.DeliveryV1alpha1().ApplicationRevisions(above.GetNamespace()).Get(ctx, names[i], metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // what it holds is told to be missing, if it is needed
		}
		if err != nil {
			return versions.Version{}, fmt.Errorf("read the revision that the cluster is held at: %w", err)
		}
		if err := revisions.Add(found); err != nil {
			return versions.Version{}, err
		}
		if i == 0 {
			for _, chunk := range found.Spec.Chunks {
				names = append(names, chunk.Name)
			}
		}
	}
	reader := contents.New(deliverylisters.NewApplicationRevisionLister(revisions), corelisters.NewSecretLister(secrets))
	return versions.New(reader, nil).At(kind, above, revision)
}
