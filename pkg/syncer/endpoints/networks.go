package endpoints

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Networks knows which clusters reach each other's pods. The zero value knows of none.
type Networks struct {
	mu    sync.Mutex // held by who changes it
	state atomic.Pointer[networks]
}

// networks are never changed, only replaced: they are read at every look, and change with the clusters.
type networks struct {
	// of is the network of each cluster that is in one, members are those of each network.
	of      map[string]string
	members map[string]map[string]projection.Member
}

// Change says what of a cluster has changed for the others of its network.
type Change string

const (
	// Unchanged is nothing, Membership is which network it is in and with which addresses, Silence is whether it can be asked what it runs.
	Unchanged  Change = ""
	Membership Change = "membership"
	Silence    Change = "silence"
)

// Follow takes down what a cluster is now, nil if it is gone.
func (n *Networks) Follow(name string, cluster *v1alpha1.Cluster) Change {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.now()
	var next projection.Member
	network := ""
	if cluster != nil {
		network = cluster.Spec.Network
		next.Silent = health.Silent(meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady))
		for _, text := range cluster.Spec.PodCIDRs {
			if prefix, err := netip.ParsePrefix(text); err == nil { // others are refused when they are written
				next.PodCIDRs = append(next.PodCIDRs, prefix)
			}
		}
	}
	was := before.of[name]
	last := before.members[was][name]
	change := Unchanged
	switch {
	case was != network, network != "" && !slices.Equal(last.PodCIDRs, next.PodCIDRs):
		change = Membership
	case network != "" && last.Silent != next.Silent:
		change = Silence
	default:
		return Unchanged
	}
	after := &networks{of: maps.Clone(before.of), members: maps.Clone(before.members)}
	for _, touched := range []string{was, network} {
		if touched != "" {
			after.members[touched] = maps.Clone(after.members[touched])
			delete(after.members[touched], name)
		}
	}
	delete(after.of, name)
	if network != "" {
		if after.members[network] == nil {
			after.members[network] = map[string]projection.Member{}
		}
		after.of[name], after.members[network][name] = network, next
	}
	n.state.Store(after)
	return change
}

// now returns what is known, which may not be changed.
func (n *Networks) now() *networks {
	if state := n.state.Load(); state != nil {
		return state
	}
	return &networks{of: map[string]string{}, members: map[string]map[string]projection.Member{}}
}

// Any reports whether any cluster is in a network.
func (n *Networks) Any() bool { return len(n.now().of) > 0 }

// In reports whether a cluster is in a network.
func (n *Networks) In(cluster string) bool { return n.now().of[cluster] != "" }

// Members returns the clusters of the network that a cluster is in, itself among them, nil if it is in none. Nobody may change them.
func (n *Networks) Members(of string) map[string]projection.Member {
	state := n.now()
	return state.members[state.of[of]]
}
