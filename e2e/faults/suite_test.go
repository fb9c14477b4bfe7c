// Package faults tests what goes wrong: clusters that fall silent, crash or are removed, restarts of Manifold, and others who change in a
// cluster what is ours or have taken its name.
package faults

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
