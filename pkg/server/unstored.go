package server

import (
	"maps"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/pipelines"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/previews"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/workloads"
)

// unstored is what the group of delivery serves and does not store: what people ask of pipelines, which versions there are of those workloads that
// they may list, and what plugins would change.
func (m *controllers) unstored(authorizer authorizer.Authorizer) (map[string]rest.Storage, error) {
	asks, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.AsksUser)))
	if err != nil {
		return nil, err
	}
	reads, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.VersionsUser)))
	if err != nil {
		return nil, err
	}
	out := pipelines.Storage(asks, clock.RealClock{})
	maps.Copy(out, pipelines.Related(asks, authorizer, m.pipelines.Alone))
	maps.Copy(out, map[string]rest.Storage{delivery.ResourceVersions: workloads.New(workloads.Options{
		Kube: m.informers, Applications: m.own.Delivery().V1alpha1().Applications(), Client: reads,
		Held: m.versions, Overrides: m.engine.Overrides, Authorizer: authorizer,
	}), "applications/" + delivery.SubresourcePreview: m.previews()})
	return out, nil
}

// previews answers what plugins say that a release would change, where any run.
func (m *controllers) previews() *previews.REST {
	applications, revisions := m.own.Delivery().V1alpha1().Applications(), m.own.Delivery().V1alpha1().ApplicationRevisions()
	out := &previews.REST{
		Applications: applications.Lister(), Revisions: revisions.Lister(),
		Known: func() bool { return applications.Informer().HasSynced() && revisions.Informer().HasSynced() },
	}
	if m.plugins != nil {
		out.Asker = m.plugins.Planning
	}
	return out
}
