// Package e2e tests the whole product as its users meet it: bin/manifold in front of stock clusters, by the stock kubectl.
package e2e

import (
	"os"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock"
)

// streams is an audit policy for requests to what runs in pods.
const streams = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: ""
    resources: [pods/exec, pods/log, pods/attach, pods/portforward, pods/proxy, services/proxy, pods/eviction]
- level: Metadata
  verbs: [delete, patch]
  resources:
  - group: ""
    resources: [pods]
- level: None
`

// withMetrics gives every cluster what most have, a metrics-server, and an audit.
var withMetrics = stock.Options{Metrics: true, AuditPolicy: streams}

// shared is the logical cluster with clusters "east" and "west" that all tests use which break nothing.
var shared = framework.NewShared(framework.Options{Clusters: []string{"east", "west"}, Cluster: withMetrics, AuditPolicy: streams})

// breakable is for the tests that break things, one after another: each leaves it with "east" and "west" joined and well, and with
// "north" running and not joined. Silence is told early, so that they need not wait for it.
var breakable = framework.NewShared(framework.Options{
	Clusters: []string{"east", "west"}, Spare: []string{"north"}, Cluster: withMetrics, ManifoldArgs: []string{"--cluster-grace-period=8s"},
})

// Tests wait more than they compute, so more of them run at a time than a small machine has processors. Those that break things are one of
// them.
var (
	beside = framework.NewTurns(3)
	alone  = framework.NewTurns(1)
)

func TestMain(m *testing.M) { os.Exit(shared.Main(m, breakable)) }

// scenario returns a namespace of the shared logical cluster for a test that may run beside others.
func scenario(t *testing.T) *framework.Scenario {
	t.Helper()
	beside.Take(t)
	return framework.NewScenario(t, shared.Get(t))
}
