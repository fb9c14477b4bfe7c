// Package syncer tests what goes down to clusters and what comes back up: dependents, Services and Ingresses, status, mirrored pods and events.
package syncer

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
