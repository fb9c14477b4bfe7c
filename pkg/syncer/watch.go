package syncer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

// watch registers with the cluster's informers.
func (s *Syncer) watch() error {
	for _, kind := range projection.Kinds() {
		if kind.Resource == secretResource {
			s.below.secrets.Handler = s.handlers.OfObjects(kind)
			continue
		}
		informer := s.below.projected[kind.Resource]
		if err := informer.SetWatchErrorHandlerWithContext(physical.LogWatchError); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(s.handlers.OfObjects(kind)); err != nil {
			return err
		}
	}
	for _, informer := range s.below.classes {
		if err := informer.SetWatchErrorHandlerWithContext(physical.LogWatchError); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(s.classes.Handler()); err != nil {
			return err
		}
	}
	for _, informer := range []cache.SharedIndexInformer{s.below.ReplicaSets, s.below.Revisions, s.below.Pods, s.below.Claims} {
		if err := informer.SetWatchErrorHandlerWithContext(physical.LogWatchError); err != nil {
			return err
		}
	}
	if _, err := s.below.ReplicaSets.AddEventHandler(s.handlers.OfReplicaSets()); err != nil {
		return err
	}
	if _, err := s.below.Revisions.AddEventHandler(s.handlers.OfRevisions()); err != nil {
		return err
	}
	if _, err := s.below.Claims.AddEventHandler(s.handlers.OfClaims()); err != nil {
		return err
	}
	_, err := s.below.Pods.AddEventHandler(s.handlers.OfPods())
	return err
}
