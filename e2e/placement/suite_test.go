// Package placement tests where workloads go and how they get elsewhere: policies, pins, capacity, classes, preemption, moves, and clusters
// that are cordoned or drained.
package placement

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
