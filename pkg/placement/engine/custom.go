package engine

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Follow takes into account what a custom kind that is described asks of clusters, until stop is called, which forgets it.
func (e *Engine) Follow(kind projection.Kind, informer cache.SharedIndexInformer) (stop func(), err error) {
	registration, err := informer.AddEventHandler(e.ledger.handler(kind, e.changed))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind.Resource.GroupResource(), err)
	}
	return func() {
		_ = informer.RemoveEventHandler(registration) // an error would say that it is gone
		e.ledger.forgetKind(kind.ListedAs())
	}, nil
}

// Description is what a policy says of a kind of custom resources.
type Description = rules.Description

// Described returns what policies say of kinds of custom resources, by kind: the description that counts comes first.
func Described(policies []v1alpha1.ClusterPlacementPolicy) map[string][]Description {
	read := make([]*rules.Policy, len(policies))
	for i := range policies {
		read[i] = rules.WidePolicyOf(&policies[i])
	}
	return rules.Described(read)
}

// Described returns how policies describe kinds of custom resources, by kind: the description that counts comes first.
func (e *Engine) Described() map[string][]Description {
	return rules.Described(e.reading.Wide())
}
