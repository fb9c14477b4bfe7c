package endpoints

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/identity"
)

func inNetwork(network string, cidrs ...string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Network: network, PodCIDRs: cidrs}}
}

func silent(c *v1alpha1.Cluster) *v1alpha1.Cluster {
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Reason: health.ReasonUnreachable}}
	return c
}

func TestNetworksAreFollowedAndChangesTold(t *testing.T) {
	n := &Networks{}
	if n.Any() || n.In("east") || n.Members("east") != nil {
		t.Error("there is a network before any cluster")
	}
	for i, step := range []struct {
		name    string
		cluster *v1alpha1.Cluster
		want    Change
		members []string // of the network that east is in
	}{
		{"east", inNetwork(""), Unchanged, nil},
		{"east", inNetwork("mesh"), Membership, []string{"east"}},
		{"west", inNetwork("mesh"), Membership, []string{"east", "west"}},
		{"west", inNetwork("mesh"), Unchanged, []string{"east", "west"}},
		{"north", inNetwork("other"), Membership, []string{"east", "west"}},
		{"west", silent(inNetwork("mesh")), Silence, []string{"east", "west"}},
		{"west", inNetwork("mesh"), Silence, []string{"east", "west"}},
		{"west", inNetwork("mesh", "10.2.0.0/16"), Membership, []string{"east", "west"}},
		{"west", inNetwork("other", "10.2.0.0/16"), Membership, []string{"east"}},
		{"south", silent(inNetwork("")), Unchanged, []string{"east"}},
		{"west", nil, Membership, []string{"east"}},
		{"west", nil, Unchanged, []string{"east"}},
		{"east", nil, Membership, nil},
	} {
		if got := n.Follow(step.name, step.cluster); got != step.want {
			t.Errorf("step %d: told %q, want %q", i, got, step.want)
		}
		if got := slices.Sorted(maps.Keys(n.Members("east"))); !slices.Equal(got, step.members) {
			t.Errorf("step %d: members %v, want %v", i, got, step.members)
		}
	}
}

func TestWhatWasReadOfANetworkStaysAsItWas(t *testing.T) {
	n := &Networks{}
	n.Follow("east", inNetwork("mesh"))
	before := n.Members("east")
	n.Follow("west", inNetwork("mesh"))
	n.Follow("east", silent(inNetwork("mesh")))
	if len(before) != 1 || before["east"].Silent {
		t.Errorf("it became %v", before)
	}
}

func TestTheFirstWriteOfASliceIsAtOnceAndTheNextAfterAnInterval(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	p := NewPace(now)
	web, api := identity.Key{Resource: identity.EndpointSlices, Name: "web"}, identity.Key{Resource: identity.EndpointSlices, Name: "api"}
	if left := p.Left(web); left != 0 {
		t.Errorf("the first waits for %s", left)
	}
	p.Wrote(web)
	now.SetTime(now.Now().Add(Interval / 5))
	if left := p.Left(web); left != Interval-Interval/5 {
		t.Errorf("the next waits for %s", left)
	}
	if left := p.Left(api); left != 0 {
		t.Errorf("another one waits for %s", left)
	}
	now.SetTime(now.Now().Add(Interval))
	if left := p.Left(web); left != 0 || len(p.wrote) > 0 {
		t.Errorf("it waits for %s after the interval, and %d are remembered", left, len(p.wrote))
	}
}
