package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/manifold-dev/manifold/e2e/framework"
)

func TestTheVersionIsThatOfKubernetes(t *testing.T) {
	s := suite.Scenario(t)
	result := s.Logical.Try("version", "-o", "json")
	if result.Code != 0 || strings.Contains(result.Stderr, "version difference") {
		t.Fatalf("kubectl version: %s", result)
	}
	var got struct {
		ServerVersion struct{ Major, Minor, GitVersion, GitCommit, BuildDate string }
	}
	if err := json.Unmarshal([]byte(result.Stdout), &got); err != nil {
		t.Fatalf("read %s: %v", result.Stdout, err)
	}
	server := got.ServerVersion
	parsed, err := version.ParseSemantic(server.GitVersion)
	if err != nil {
		t.Fatalf("parse the server's version: %v", err)
	}
	if server.Major != "1" || server.Minor != "37" || parsed.Major() != 1 || parsed.Minor() != 37 || parsed.PreRelease() != "" {
		t.Errorf("server version %+v, want 1.37 and no pre-release", server)
	}
	if !strings.HasPrefix(parsed.BuildMetadata(), "manifold") {
		t.Errorf("build metadata %q does not say that this is manifold", parsed.BuildMetadata())
	}
	if server.GitCommit == "" || server.BuildDate == "" {
		t.Errorf("server version %+v lacks the commit or the date", server)
	}
}

// TestEveryStableKindOfKubernetesIsServed compares with a stock API server of the same version.
func TestEveryStableKindOfKubernetesIsServed(t *testing.T) {
	s := suite.Scenario(t)
	logical, stock := servedBy(s.Logical), servedBy(s.East)
	if missing := stock.Difference(logical); missing.Len() > 0 {
		t.Errorf("these are served by a stock cluster and not by the logical one: %s", sorted(missing))
	}
	want := sets.New("manifold.dev/v1alpha1 clusters", "manifold.dev/v1alpha1 placementpolicies", "manifold.dev/v1alpha1 clusterplacementpolicies",
		"delivery.manifold.dev/v1alpha1 applications", "delivery.manifold.dev/v1alpha1 applicationrevisions", "delivery.manifold.dev/v1alpha1 releases",
		"delivery.manifold.dev/v1alpha1 plugins", "delivery.manifold.dev/v1alpha1 pluginrecords",
		"delivery.manifold.dev/v1alpha1 releaselogparts", "delivery.manifold.dev/v1alpha1 workloadversions")
	if extra := logical.Difference(stock); !extra.Equal(want) {
		t.Errorf("beside what a stock cluster serves there is %s, want %s", sorted(extra), sorted(want))
	}
}

// servedBy returns what api-resources lists, as group and version with resource.
func servedBy(s *framework.Side) sets.Set[string] {
	out := sets.New[string]()
	for line := range strings.Lines(s.Kubectl("api-resources", "--no-headers")) {
		fields := strings.Fields(line)
		// Short names are not always there: NAME [SHORTNAMES] APIVERSION NAMESPACED KIND.
		if len(fields) >= 4 && !strings.Contains(line, "example.com") { // another test's
			out.Insert(fields[len(fields)-3] + " " + fields[0])
		}
	}
	return out
}

func sorted(in sets.Set[string]) []string { return slices.Sorted(slices.Values(in.UnsortedList())) }

func TestKindsExplainThemselves(t *testing.T) {
	s := suite.Scenario(t)
	for path, want := range map[string]string{
		"deployment.spec.strategy":                "The deployment strategy to use to replace existing pods",
		"clusters.spec.limits":                    "limits is the most that placement may use of this cluster",
		"placementpolicy.spec.division.weights":   "whole numbers by cluster name",
		"clusterplacementpolicy.spec.clusters":    "labelSelector",
		"clusters.status.allocatable":             "ready and schedulable nodes",
		"pods.spec.containers.resources.requests": "minimum amount of compute resources",
	} {
		if got := strings.Join(strings.Fields(s.Logical.Kubectl("explain", path)), " "); !strings.Contains(got, want) {
			t.Errorf("explain %s does not say %q:\n%s", path, want, got)
		}
	}
}

func TestOwnKindsPrintAsTables(t *testing.T) {
	s := suite.Scenario(t)
	for line := range strings.Lines(s.Logical.Kubectl("get", "clusters", "--no-headers")) {
		if !strings.Contains(line, "True") && !strings.Contains(line, "Ready") {
			t.Errorf("kubectl get clusters does not say whether it is ready: %s", line)
		}
	}
	nodes := s.Logical.Kubectl("get", "nodes", "-o", "wide")
	for _, cluster := range []string{"east", "west"} {
		if !strings.Contains(nodes, cluster) {
			t.Errorf("kubectl get nodes does not show cluster %q:\n%s", cluster, nodes)
		}
	}
	if got := s.Logical.Kubectl("get", "clusterplacementpolicies"); !strings.Contains(got, "default") {
		t.Errorf("the default policy is not listed:\n%s", got)
	}
}
