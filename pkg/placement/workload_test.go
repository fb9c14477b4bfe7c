package placement_test

import (
	"maps"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestNeighboursCountReplicasAndWorkloads(t *testing.T) {
	n := placement.Neighbours{}
	n.Add(build.Shares("east", 3, "west", 1))
	n.Add(build.Shares("west", 0))
	n.Add(nil)
	if want := (placement.Neighbours{"east": 3, "west": 2}); !maps.Equal(n, want) {
		t.Errorf("got %v, want %v", n, want)
	}
	if got := n.Home(); got != "east" {
		t.Errorf("home %q", got)
	}
	if got := (placement.Neighbours{"west": 2, "east": 2}).Home(); got != "east" {
		t.Errorf("of equals the first name is home, got %q", got)
	}
	if got := (placement.Neighbours{}).Home(); got != "" {
		t.Errorf("nobody's home is %q", got)
	}
}
