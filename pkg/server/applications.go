package server

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications"
	"github.com/manifold-dev/manifold/pkg/delivery/render/confined"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
	"github.com/manifold-dev/manifold/pkg/server/pushes"
)

// renderers is how many processes render at a time. Each takes a processor.
const renderers = 2

// newApplications makes the controller of applications.
func (m *controllers) newApplications() (*applications.Controller, error) {
	as := m.clients[v1alpha1.DeliveryUser]
	config := asJSON(m.identities.As(v1alpha1.DeliveryUser))
	objects, mapper, err := anyKind(config)
	if err != nil {
		return nil, err
	}
	o := applications.Options{
		Own: m.own, Kube: m.informers, Client: as.manifold, Objects: as.kube, Dynamic: objects,
		Mapper:   mapper,
		Renderer: confined.New(confined.Bounds{}, renderers), Repositories: m.repositories,
		Recorder: m.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "manifold"}), Queues: m.queues, Drift: &m.drift,
		Customs: m.custom.Objects(), ClusterScoped: m.clusterScoped, As: objectClients(config), IsNowhere: m.upstream.Demand.IsNowhere,
	}
	if m.plugins != nil {
		o.Live = m.plugins.Live
	}
	return applications.New(o)
}

// newRepositories makes what fetches and keeps repositories.
func newRepositories(c CompletedOptions) (*git.Client, error) {
	repositories, err := git.New(c.dir.join("git"), c.outgoing.Git(), git.Limits{})
	if err != nil {
		return nil, fmt.Errorf("prepare for git: %w", err)
	}
	return repositories, nil
}

// newAnnouncer makes what tells applications of pushes to their repositories.
func (m *controllers) newAnnouncer() *pushes.Announcer {
	applications, secrets := m.own.Delivery().V1alpha1().Applications(), m.informers.Core().V1().Secrets()
	return pushes.NewAnnouncer(pushes.Options{
		Applications: applications.Lister(), Secrets: secrets.Lister(),
		Synced:   []cache.InformerSynced{applications.Informer().HasSynced, secrets.Informer().HasSynced},
		Client:   m.clients[v1alpha1.DeliveryUser].manifold.DeliveryV1alpha1(),
		Recorder: m.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "manifold"}), Queues: m.queues, Clock: clock.RealClock{},
	})
}
