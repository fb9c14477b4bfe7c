// Package pipelines tests the pipelines of Weave GitOps over stock clusters: the kinds and who may define them, what is shown of the targets, and how a
// version is promoted from one environment to the next.
package pipelines

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// shared is a logical cluster with clusters "dev" and "prod", as the document's first story has them, in which the kinds are defined. Repositories, forges and
// receivers of tests are on this machine.
var shared = framework.NewShared(framework.Options{
	Clusters: []string{"dev", "prod"}, ManifoldArgs: []string{"--outbound-networks=127.0.0.0/8", "--outbound-http"},
})

// beside lets some tests run at a time: they wait more than they compute.
var beside = framework.NewTurns(3)

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// definitions are the kinds as the docs say to define them.
const definitions = "../../config/crds/weave"

// Resources of both groups, as kubectl takes them.
const (
	pipelines = "pipelines.pipelines.weave.works"
	older     = "pipelines.pipelines.wego.weave.works"

	gitopsClusters = "gitopsclusters.gitops.weave.works"
)

// scenario returns a namespace of the shared logical cluster, in which the kinds are served, for a test that may run beside others.
func scenario(t *testing.T) *framework.Scenario {
	t.Helper()
	beside.Take(t)
	s := framework.NewScenario(t, shared.Get(t))
	defined.Do(func() { s.Logical.Kubectl("apply", "-k", definitions) })
	served(s, pipelines, older, gitopsClusters)
	return s
}

// defined is done once the first test has defined the kinds.
var defined sync.Once

// served waits until resources can be listed.
func served(s *framework.Scenario, resources ...string) {
	s.Helper()
	for _, resource := range resources {
		s.Logical.Poll(resource+" are served", func() error {
			return framework.Failure(s.Logical.Try("get", resource))
		})
	}
}

// namespace makes a further namespace with a name of its own, which goes with the test, and returns its name.
func namespace(s *framework.Scenario, suffix string) string {
	s.Helper()
	name := s.Namespace + "-" + suffix
	s.Logical.Kubectl("create", "namespace", name)
	s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "namespace", name, "--wait=false") })
	return name
}

// environment is one of a pipeline over namespaces, as "NAMESPACE" of the logical cluster or "CLUSTER/NAMESPACE".
type environment struct {
	name    string
	targets []string
}

// over makes the environments of a spec.
func over(environments ...environment) string {
	out := "  environments:\n"
	for _, e := range environments {
		out += fmt.Sprintf("  - name: %s\n    targets:\n", e.name)
		for _, target := range e.targets {
			cluster, namespace, named := strings.Cut(target, "/")
			if !named {
				cluster, namespace = "", cluster
			}
			out += "    - namespace: " + namespace + "\n"
			if named {
				out += "      clusterRef: {kind: GitopsCluster, name: " + cluster + "}\n"
			}
		}
	}
	return out
}

// pipeline is a manifest of the newer group for an app, such as "Deployment/web". More is YAML of the spec, such as a promotion.
func pipeline(name, app string, more string, environments ...environment) string {
	kind, of, _ := strings.Cut(app, "/")
	version := map[string]string{
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "CronJob": "batch/v1", "Application": "delivery.manifold.dev/v1alpha1",
	}[kind]
	if version == "" {
		version = "apps/v1"
	}
	return fmt.Sprintf("apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: %s}\nspec:\n  appRef: {apiVersion: %s, kind: %s, name: %s}\n%s%s",
		name, version, kind, of, over(environments...), more)
}

// olderPipeline is a manifest of the older group, whose workloads have a label.
func olderPipeline(name, more string, environments ...environment) string {
	return fmt.Sprintf("apiVersion: pipelines.wego.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: %s}\nspec:\n%s%s", name, over(environments...), more)
}
