// Package operators runs released operators, as they are, beside a logical cluster in front of two: each to a working custom resource, through
// its scaling to its deletion. They take long to build, so only "make operators" does all this.
package operators

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// shared is the logical cluster beside which all operators run, one after another. Pods pass their webhooks.
var shared = framework.NewShared(framework.Options{Clusters: clusters, JoinArgs: []string{"--pod-webhooks"}})

// clusters are the names of the clusters behind it.
var clusters = []string{"east", "west"}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
