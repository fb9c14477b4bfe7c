// Package access tests who may do what: joining clusters and their credentials and rights, tenants beside each other, pods that call the API,
// and clusters that lie.
package access

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
