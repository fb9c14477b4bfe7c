// Package api tests the logical cluster as a Kubernetes API: its kinds and verbs, what extends it, its own process and what it stores.
package api

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
