// Package workloads tests what becomes of workloads of each kind, from their start over several clusters to their deletion: their pods, what
// they own, and what bounds them.
package workloads

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
