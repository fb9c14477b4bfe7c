package framework

import (
	"testing"

	"github.com/manifold-dev/manifold/hack/stock"
)

// Suite is what the tests of one package share: an environment for the tests that break nothing, and one for those that do. Each starts with
// the first test that asks for it.
type Suite struct {
	// shared is a logical cluster with clusters "east" and "west".
	shared *Shared
	// breakable is for the tests that break things, one after another: each leaves it with "east" and "west" joined and well, and with
	// "north" running and not joined. Silence is told early, so that they need not wait for it.
	breakable *Shared

	// Tests wait more than they compute, so more of them run at a time than a small machine has processors. Those that break things are one
	// of them.
	beside, alone Turns
}

// NewSuite returns a suite of which nothing has started, with further arguments for "manifold start". Every cluster has what most have, a
// metrics-server, and an audit.
func NewSuite(manifoldArgs ...string) *Suite {
	cluster := stock.Options{Metrics: true, AuditPolicy: streams}
	return &Suite{
		shared: NewShared(Options{Clusters: []string{"east", "west"}, Cluster: cluster, AuditPolicy: streams, ManifoldArgs: manifoldArgs}),
		breakable: NewShared(Options{
			Clusters: []string{"east", "west"}, Spare: []string{"north"}, Cluster: cluster,
			ManifoldArgs: append([]string{"--cluster-grace-period=8s"}, manifoldArgs...),
		}),
		beside: NewTurns(3), alone: NewTurns(1),
	}
}

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

// Main runs the tests and stops what they have started. It returns the exit code.
func (s *Suite) Main(m *testing.M) int { return s.shared.Main(m, s.breakable) }

// Scenario returns a namespace of the shared logical cluster for a test that may run beside others.
func (s *Suite) Scenario(t *testing.T) *Scenario {
	t.Helper()
	s.shared.use(t)
	s.Beside(t)
	return NewScenario(t, s.shared.Get(t))
}

// Exclusive returns a scenario in the same logical cluster for a test that uses up clusters, so that no other test may run meanwhile.
func (s *Suite) Exclusive(t *testing.T) *Scenario {
	t.Helper()
	return NewScenario(t, s.shared.Get(t))
}

// Fragile returns a scenario in the environment that may be broken, which one test uses at a time.
func (s *Suite) Fragile(t *testing.T) *Scenario {
	t.Helper()
	s.breakable.use(t)
	s.alone.Take(t)
	return NewScenario(t, s.breakable.Get(t))
}

// Beside lets a test run beside others that starts an environment of its own.
func (s *Suite) Beside(t *testing.T) {
	t.Helper()
	s.beside.Take(t)
}
