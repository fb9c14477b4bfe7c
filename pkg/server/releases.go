package server

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	api "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/pkg/delivery/insight/counted"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/notify"
	"github.com/manifold-dev/manifold/pkg/delivery/scripts"
)

// newLog makes what keeps the logs of releases.
func (m *controllers) newLog() (*logs.Controller, error) {
	log, err := logs.New(logs.Options{
		Queues: m.queues, Informers: m.own, Client: m.clients[v1alpha1.DeliveryUser].manifold, Clock: clock.RealClock{},
		Output: m.scriptOutput(m.newScripts(asJSON(m.identities.As(v1alpha1.DeliveryUser)))),
	})
	if err != nil {
		return nil, fmt.Errorf("make the logs of releases: %w", err)
	}
	return log, nil
}

// releaseParts are the controllers that tell of releases, and do nothing about them.
func (m *controllers) releaseParts(c CompletedOptions) ([]part, error) {
	secrets := m.informers.Core().V1().Secrets()
	notices, err := notify.New(notify.Options{
		Queues: m.queues, Informers: m.own, Secrets: secrets.Lister(), SecretsSynced: secrets.Informer().HasSynced,
		Client: m.clients[v1alpha1.DeliveryUser].manifold, Recorder: m.recorder(scheme.Scheme),
		Policy: c.outgoing.Policy(), Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, fmt.Errorf("make the notifications: %w", err)
	}
	if err := counted.Watch(c.name, m.own); err != nil {
		return nil, err
	}
	return []part{{"logs of releases", m.log.Run}, {"notifications", notices.Run}}, nil
}

// scriptOutput returns how the log of a release gets at what a script or the Job of a measurement has written.
func (m *controllers) scriptOutput(of *scripts.Scripts) func(context.Context, *api.Release, string) ([]string, error) {
	applications := m.own.Delivery().V1alpha1().Applications().Lister()
	return func(ctx context.Context, release *api.Release, run string) ([]string, error) {
		app, err := applications.Applications(release.Namespace).Get(release.Spec.Application)
		if err != nil {
			return nil, err
		}
		return of.Output(ctx, scripts.Run{Application: app, Release: release, Name: run})
	}
}
