package syncer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
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

// gatewaysIn returns those of the Gateway API that a cluster has.
func (u *Upstream) gatewaysIn(cluster string) []addresses.Gateway {
	if u.outside.Gateways == nil {
		return nil
	}
	return u.outside.Gateways(cluster)
}

// Behind tells of the workloads that Services lead to in a cluster. In one of which not everything has been seen, any may run.
func (u *Upstream) Behind(cluster string, services []cache.ObjectName) addresses.Behind {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return addresses.Behind{Runs: true}
	}
	return s.addresses.BehindServices(services)
}

// CustomKept returns the address from outside that keeps a workload of a custom kind in a cluster which it leaves, nil if none does. It has what leads users
// there know that the workload waits for that, and that it does no more. Known is false as long as nobody can tell.
func (u *Upstream) CustomKept(cluster string, key identity.Key, leaves bool) (address *moves.Address, known bool) {
	s, running := u.Syncer(cluster)
	if !running || !s.HasSynced() {
		return nil, false
	}
	kind, custom := u.CustomKind(key.Resource)
	above := u.Get(key)
	last, now := s.states.Of(key), states.State{}
	switch {
	case leaves && (!custom || above == nil):
		return nil, false
	case leaves:
		address = s.addresses.Keeping(identity.Workload{Kind: kind, Object: above})
	}
	if address != nil {
		now.Wait = states.Wait{Held: true, Addressed: true, Reason: address.String(), Until: address.Until}
	}
	if last.Addressed != now.Addressed {
		s.states.Set(key, now)
		s.leadersChanged(key, kind, last, now)
	}
	return address, true
}

// AddressesChanged has clusters look again at what they keep for the sake of addresses.
func (u *Upstream) AddressesChanged() {
	u.router.LookAtAddressed(metav1.NamespaceAll)
}
