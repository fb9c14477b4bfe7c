package server

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/admission"
	"github.com/manifold-dev/manifold/pkg/clusters/sights"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/pipelines"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// newPipelines makes the controller that shows what the targets of pipelines run. It has nothing to do until their kind is defined.
func (m *controllers) newPipelines(holds *held.Customs) (*pipelines.Controller, error) {
	client, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.PipelinesUser)))
	if err != nil {
		return nil, err
	}
	return pipelines.New(pipelines.Options{
		Kube: m.informers, Manifold: m.own, Kinds: m.custom.Objects(), Sights: seenBy{m.sights}, Versions: m.versions, Holds: holds.In, Dynamic: client,
		May:            m.may,
		LogicalCluster: func() string { return m.upstream.LogicalCluster }, Queues: m.queues,
	})
}

// may reports whether somebody has a right now, by what is known of RBAC.
func (m *controllers) may(of weave.Author, right weave.Right) bool {
	return admission.May(context.Background(), m.authorizer, of, right)
}

// newSights makes what shows pipelines what is in clusters.
func (m *controllers) newSights() *sights.Sights {
	return sights.New(sights.Options{
		For: "pipelines", Grant: "--allow-pipelines", Trim: versions.TrimRelated,
		Changed: func(cluster string, wish sights.Wish, before, after *unstructured.Unstructured) {
			m.pipelines.SightChanged(cluster, pipelines.Sight(wish), before, after)
		},
	})
}

// seenBy shows sights to pipelines.
type seenBy struct{ *sights.Sights }

// Want implements pipelines.Sights.
func (s seenBy) Want(owner string, wanted map[string][]pipelines.Sight) {
	wishes := make(map[string][]sights.Wish, len(wanted))
	for cluster, all := range wanted {
		for _, sight := range all {
			wishes[cluster] = append(wishes[cluster], sights.Wish(sight))
		}
	}
	s.Sights.Want(owner, wishes)
}

// Look implements pipelines.Sights.
func (s seenBy) Look(cluster string, sight pipelines.Sight) pipelines.Seen {
	return pipelines.Seen(s.Sights.Look(cluster, sights.Wish(sight)))
}

// indexers index the metadata of custom resources.
func indexers() cache.Indexers {
	out := objects.Indexers()
	maps.Copy(out, pipelines.Indexers())
	return out
}
