// Package delivery tests how applications are released: the kinds of delivery, who may do what with them, and who agreed.
package delivery

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// The repositories of the tests are on this machine.
var suite = framework.NewSuite("--outbound-networks=127.0.0.0/8", "--outbound-http")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
