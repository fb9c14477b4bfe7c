// Package clients tests programs that were written for one cluster: kubectl with all that it can do, Helm, released operators, autoscalers and
// others that read metrics.
package clients

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
