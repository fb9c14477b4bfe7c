// Package kubevela tests ApplicationDeployments of core.oam.dev over stock clusters: revisions side by side, requests shared out over them, and how one
// takes the place of another.
package kubevela

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
