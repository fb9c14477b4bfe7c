// Package e2e tests the whole product as its users meet it: bin/manifold in front of stock clusters, by the stock kubectl.
package e2e

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
