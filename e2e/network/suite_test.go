// Package network tests Services whose pods are in several clusters of one network.
package network

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// meshed are clusters that share a network, and whose silence is told early. Tests use it one after another.
var meshed = framework.NewShared(framework.Options{
	Clusters: []string{"east", "west"}, JoinArgs: []string{"--network", "mesh"}, ManifoldArgs: []string{"--cluster-grace-period=8s"},
})

func TestMain(m *testing.M) { os.Exit(meshed.Main(m)) }
