package gitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// charts serves a repository with versions of a chart, and returns its address.
func charts(s *framework.Scenario, versions ...string) string {
	s.Helper()
	chart, served, home := s.TempDir(), s.TempDir(), s.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: podinfo\nversion: 0.0.0\n",
		"templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo}
spec:
  replicas: 1
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec: {containers: [{name: podinfo, image: "podinfo:{{ .Chart.Version }}", resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`,
	} {
		file := filepath.Join(chart, "podinfo", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	for _, version := range versions {
		s.Logical.Helm(home, "package", filepath.Join(chart, "podinfo"), "--version", version, "--destination", served)
	}
	s.Logical.Helm(home, "repo", "index", served)
	server := httptest.NewServer(http.FileServer(http.Dir(served)))
	s.Cleanup(server.Close)
	return server.URL
}

// released has Flux in a cluster install a version of the chart.
func released(in *framework.Side, url, version string) {
	in.Apply(fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {url: %q, interval: 1m}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo}
spec:
  interval: 1m
  chart: {spec: {chart: podinfo, version: %s, sourceRef: {kind: HelmRepository, name: charts}}}
`, url, version))
}

// TestW4W17W32W33W41HelmReleasesOfFluxInTheClustersArePromotedByNotification has Flux run in the clusters themselves, where Manifold writes nothing: whoever hears the event
// changes what prod is to run, as the test does.
func TestW4W17W32W33W41HelmReleasesOfFluxInTheClustersArePromotedByNotification(t *testing.T) {
	s := scenario(t)
	dev, prod := alone(s, "dev"), alone(s, "prod")
	url := charts(s, "6.1.5", "6.1.6")
	for _, side := range []*framework.Side{dev, prod} {
		startFlux(s, side, tools.FluxSource, tools.FluxHelm)
		released(side, url, "6.1.5")
	}
	target := func(cluster string) string {
		return fmt.Sprintf("{namespace: %s, clusterRef: {kind: GitopsCluster, name: %s}}", dev.Namespace, cluster)
	}
	s.Logical.Apply(fmt.Sprintf(`apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: podinfo}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: podinfo}
  environments:
  - {name: dev, targets: [%s]}
  - {name: prod, targets: [%s]}
  promotion: {strategy: {notification: {}}}
`, target("dev"), target("prod")))
	runs(s, "podinfo", "dev", "HelmRelease/podinfo", "6.1.5")
	runs(s, "podinfo", "prod", "HelmRelease/podinfo", "6.1.5")

	released(dev, url, "6.1.6")
	runs(s, "podinfo", "dev", "HelmRelease/podinfo", "6.1.6")
	runs(s, "podinfo", "prod", "HelmRelease/podinfo", "6.1.5") // W41
	promoted(s, "podinfo", "prod", "6.1.6", weave.PromotionStarted)
	var events struct {
		Items []struct {
			Metadata struct{ Annotations map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(s.Logical.Kubectl("get", "events", "--field-selector=reason=Promote,involvedObject.name=podinfo", "-o", "json")), &events); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].Metadata.Annotations["environment"] != "prod" || events.Items[0].Metadata.Annotations["version"] != "6.1.6" {
		t.Fatalf("the events are %+v", events)
	}
	released(prod, url, events.Items[0].Metadata.Annotations["version"])
	promoted(s, "podinfo", "prod", "6.1.6", weave.PromotionVerified)
	runs(s, "podinfo", "prod", "HelmRelease/podinfo", "6.1.6")
	if image := prod.Kubectl("get", "deployment", "podinfo", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); !strings.HasSuffix(image, ":6.1.6") {
		t.Errorf("prod runs %s", image)
	}
	// W32: what belongs to it there, as Flux says, for who may get it.
	s.Logical.Poll("what belongs to the HelmRelease in prod is shown", func() error {
		return framework.Contains(s.Logical.CLI("pipeline", "get", "podinfo", "--related", "prod"), "HelmRepository "+prod.Namespace+"/charts", "Deployment "+prod.Namespace+"/podinfo")
	})
	s.Logical.Kubectl("create", "rolebinding", "looker", "--clusterrole=view", "--user=looker")
	s.Logical.Poll("who may not get it is told so", func() error {
		got := s.Logical.TryCLI("pipeline", "get", "podinfo", "--related", "prod", "--as=looker")
		if strings.Contains(got.Stdout, "/charts") {
			t.Fatalf("who may not get the HelmRelease is told what belongs to it:\n%s", got.Stdout)
		}
		return errors.Join(framework.Failure(got), framework.Contains(got.Stdout, "what belongs to helmreleases.helm.toolkit.fluxcd.io is left out"))
	})
}

// alone makes a namespace in a cluster, which the logical cluster has nothing to do with.
func alone(s *framework.Scenario, cluster string) *framework.Side {
	s.Helper()
	name := s.Namespace + "-alone"
	side := s.Side(cluster)
	side.Kubectl("create", "namespace", name)
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, s.Environment.Physical[cluster], "delete", "namespace", name, "--wait=false")
	})
	return side.In(name)
}
