// Package storage tests claims and volumes: where they bind, how they come along, and whose they are.
package storage

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
