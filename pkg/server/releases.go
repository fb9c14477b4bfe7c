package server

import (
	"fmt"

	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/notify"
)

// releaseParts are the controllers that tell of releases, and do nothing about them.
func (m *controllers) releaseParts(c CompletedOptions) ([]part, error) {
	log, err := logs.New(logs.Options{
		Queues: m.queues, Informers: m.own, Client: m.clients[v1alpha1.DeliveryUser].manifold, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, fmt.Errorf("make the logs of releases: %w", err)
	}
	secrets := m.informers.Core().V1().Secrets()
	notices, err := notify.New(notify.Options{
		Queues: m.queues, Informers: m.own, Secrets: secrets.Lister(), SecretsSynced: secrets.Informer().HasSynced,
		Client: m.clients[v1alpha1.DeliveryUser].manifold, Recorder: m.recorder(scheme.Scheme),
		Policy: outbound.Policy{PlainHTTP: c.outbound.PlainHTTP, Allow: c.outbound.allow}, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, fmt.Errorf("make the notifications: %w", err)
	}
	return []part{{"logs of releases", log.Run}, {"notifications", notices.Run}}, nil
}
