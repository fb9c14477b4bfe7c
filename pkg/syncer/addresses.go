package syncer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// leadersChanged tells what leads users to a workload that this cluster has come to keep its last replicas for their sake, or does not any more.
// Gateways are told as well when the cluster has come to have the workload, or has it no longer.
func (s *Syncer) leadersChanged(key identity.Key, kind projection.Kind, last, now states.State) {
	if !kind.Workload {
		return
	}
	if last.Addressed != now.Addressed {
		if above := s.Upstream.Get(key); above != nil {
			for _, leading := range s.addresses.Leading(identity.Workload{Kind: kind, Object: above}) {
				s.changed(leading, true)
			}
		}
	}
	told := s.Upstream.outside.GatewaysChanged
	if told != nil && (last.Addressed != now.Addressed || (last.Hash == "") != (now.Hash == "")) {
		told(s.cluster)
	}
}

// lookAtAddressed looks again at what is kept in a namespace for the sake of addresses; "" is every namespace.
func (s *Syncer) lookAtAddressed(namespace string) {
	for _, key := range s.states.Addressed(func(k identity.Key) bool { return namespace == "" || k.Namespace == namespace }) {
		s.enqueue(key)
	}
}

// gateways returns those of the Gateway API that the cluster has.
func (s *Syncer) gateways() []addresses.Gateway {
	if s.Upstream.outside.Gateways == nil {
		return nil
	}
	return s.Upstream.outside.Gateways(s.cluster)
}

// Behind tells of the workloads that Services lead to in a cluster. In one of which not everything has been seen, any may run.
func (u *Upstream) Behind(cluster string, services []cache.ObjectName) addresses.Behind {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return addresses.Behind{Runs: true}
	}
	return s.addresses.BehindServices(services)
}

// AddressesChanged has clusters look again at what they keep for the sake of addresses.
func (u *Upstream) AddressesChanged() {
	for _, s := range u.Syncers() {
		s.lookAtAddressed("")
	}
}
