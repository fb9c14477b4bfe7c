package pipelines

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// fluxed is done once the kinds of Flux are everywhere, and opened once the clusters let pipelines see them.
var fluxed, opened sync.Once

// flux defines the kinds of Flux in the logical cluster and in both clusters.
func flux(s *framework.Scenario) {
	s.Helper()
	fluxed.Do(func() {
		definitions, err := os.ReadFile("testdata/flux.yaml")
		if err != nil {
			s.Fatal(err)
		}
		for _, side := range []*framework.Side{s.Logical, s.Side("dev"), s.Side("prod")} {
			side.Apply(string(definitions))
			side.Established(string(definitions))
		}
	})
	served(s, "helmreleases.helm.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io")
}

// allow joins both clusters such that pipelines show what runs there by itself.
func allow(s *framework.Scenario) {
	s.Helper()
	opened.Do(func() {
		for _, cluster := range []string{"dev", "prod"} {
			s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(), "--allow-pipelines")
		}
	})
}

// released has a HelmRelease there as it is when Flux has installed a version of its chart.
func released(side *framework.Side, name, version, labels string) {
	side.Apply(fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, labels: {%s}}\nspec: {chart: {spec: {chart: podinfo, version: %s}}}", name, labels, version))
	generation := side.Kubectl("get", "helmrelease", name, "-o", "jsonpath={.metadata.generation}")
	side.Kubectl("patch", "helmrelease", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status": {"observedGeneration": %s, "lastAppliedRevision": %q, "conditions": [{"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "done", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
		generation, version))
}

// deployed is a Deployment of one image.
func deployed(name, image, labels string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {%[3]s}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: %[2]q, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`, name, image, labels)
}

// told reads the status of a pipeline.
func told(s *framework.Scenario, resource, name string) (weave.Status, error) {
	s.Helper()
	out := weave.Pipeline{}
	result := s.Logical.Try("get", resource, name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return out.Status, err
	}
	return out.Status, json.Unmarshal([]byte(result.Stdout), &out)
}

// shown is what is shown of an environment: each target with its workloads, with a star for those that are ready.
func shown(status weave.Status, environment string) string {
	of := status.Environments[environment]
	if of == nil {
		return "nothing"
	}
	var out []string
	for _, target := range of.Targets {
		said := strings.TrimPrefix(target.Name+"/", "/")
		for _, w := range target.Workloads {
			said += fmt.Sprintf(" %s/%s %s", w.Kind, w.Name, w.Version)
			if w.Ready {
				said += "*"
			}
		}
		out = append(out, strings.TrimSpace(said))
	}
	return strings.Join(out, "; ")
}

// shows waits until an environment is shown as it should be.
func shows(s *framework.Scenario, resource, name, environment, want string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("%s of %s shows %q", environment, name, want), func() error {
		status, err := told(s, resource, name)
		if err != nil {
			return err
		}
		if got := shown(status, environment); got != want {
			return fmt.Errorf("it shows %q; %+v", got, status)
		}
		return nil
	})
}

func TestW9W10W11W12W17W18W36WorkloadsOfTheTargetsAreShownAsTheyChange(t *testing.T) {
	s := scenario(t)
	flux(s)
	dev, prod, elsewhere := namespace(s, "dev"), namespace(s, "prod"), namespace(s, "elsewhere")
	s.Logical.Apply(olderPipeline("podinfo", "", environment{"dev", []string{dev}}, environment{"prod", []string{prod}}))
	shows(s, older, "podinfo", "dev", "") // there is none yet
	const label, newer = "pipelines.wego.weave.works/pipeline: podinfo", "pipelines.weave.works/pipeline: podinfo"
	released(s.Logical.In(dev), "podinfo-pipeline-helm", "6.1.8", label)
	s.Logical.In(dev).Apply(deployed("podinfo-pipeline", "podinfo:6.1.8", label), deployed("podinfo-pipeline-2", "podinfo:6.1.8", newer), deployed("other", "podinfo:1", "pipelines.weave.works/pipeline: nobody")) // W14
	released(s.Logical.In(elsewhere), "podinfo-pipeline-helm", "9.9.9", label)
	released(s.Logical.In(prod), "podinfo-pipeline-helm", "6.1.7", newer)
	const all = "Deployment/podinfo-pipeline 6.1.8* Deployment/podinfo-pipeline-2 6.1.8* HelmRelease/podinfo-pipeline-helm 6.1.8*"
	shows(s, older, "podinfo", "dev", all)
	shows(s, older, "podinfo", "prod", "HelmRelease/podinfo-pipeline-helm 6.1.7*")
	text := s.Logical.Kubectl("describe", older, "podinfo")
	for _, want := range []string{`Dev:\s+Targets:`, `Kind:\s+Deployment`, `Name:\s+podinfo-pipeline-2`, `Version:\s+6\.1\.8`, `Kind:\s+HelmRelease`, `Version:\s+6\.1\.7`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("kubectl describe does not show %s:\n%s", want, text)
		}
	}
	before := versionOf(s, older, "podinfo")
	begun := time.Now()
	released(s.Logical.In(prod), "podinfo-pipeline-helm", "6.1.8", newer)
	shows(s, older, "podinfo", "prod", "HelmRelease/podinfo-pipeline-helm 6.1.8*")
	t.Logf("what has changed is shown after %s, its two requests included", time.Since(begun))
	if after := versionOf(s, older, "podinfo"); after == before {
		t.Error("the pipeline is as it was")
	}
	s.Logical.In(dev).Kubectl("delete", "deployment", "podinfo-pipeline-2")
	shows(s, older, "podinfo", "dev", "Deployment/podinfo-pipeline 6.1.8* HelmRelease/podinfo-pipeline-helm 6.1.8*")
}

func versionOf(s *framework.Scenario, resource, name string) string {
	s.Helper()
	return s.Logical.Kubectl("get", resource, name, "-o", "jsonpath={.metadata.resourceVersion}")
}

func TestW15W16WhatThereIsNotIsNamedAndConcernsNobodyElse(t *testing.T) {
	s := scenario(t)
	flux(s)
	dev := namespace(s, "dev")
	released(s.Logical.In(dev), "podinfo", "6.1.6", "")
	s.Logical.Apply(pipeline("well", "HelmRelease/podinfo", "", environment{"dev", []string{dev}}))
	shows(s, pipelines, "well", "dev", "HelmRelease/podinfo 6.1.6*")
	well := versionOf(s, pipelines, "well")
	s.Logical.Apply(pipeline("podinfo", "HelmRelease/podinfo", "", environment{"dev", []string{dev, dev + "-gone"}}, environment{"prod", []string{"mars/" + dev}}))
	shows(s, pipelines, "podinfo", "dev", "HelmRelease/podinfo 6.1.6*; ")
	status, err := told(s, pipelines, "podinfo")
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(status.Conditions, weave.ConditionReady)
	if ready == nil || ready.Status != "False" {
		t.Fatalf("Ready is %+v", ready)
	}
	expect.Says(t, ready.Message, dev+"-gone", "1 more")
	expect.Says(t, status.Environments["prod"].Targets[0].Error, `there is no GitopsCluster "mars"`)
	if !status.Environments["dev"].Targets[0].Ready || status.Environments["dev"].Targets[0].Error != "" {
		t.Errorf("of the target that is well is told %+v", status.Environments["dev"].Targets[0])
	}
	if now := versionOf(s, pipelines, "well"); now != well {
		t.Error("the other pipeline has been written")
	}
	s.Logical.Kubectl("create", "namespace", dev+"-gone")
	s.Cleanup(func() { s.Environment.Cleanup(t, "delete", "namespace", dev+"-gone", "--wait=false") })
	s.Logical.Poll("the namespace is there now", func() error {
		status, err := told(s, pipelines, "podinfo")
		if err != nil {
			return err
		}
		if said := status.Environments["dev"].Targets[1].Error; said != "" {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
}

// alone makes the scenario's namespace, or one of that and a suffix, in a cluster, which the logical cluster has nothing to do with.
func alone(s *framework.Scenario, cluster, suffix string) *framework.Side {
	s.Helper()
	name := s.Namespace + suffix
	below := s.Side(cluster)
	below.Kubectl("create", "namespace", name)
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, s.Environment.Physical[cluster], "delete", "namespace", name, "--wait=false")
	})
	return below.In(name)
}

func TestW35W37W38W41W42DevShowsAnotherVersionThanProdOfWhatFluxRunsThere(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	flux(s)
	allow(s)
	dev, prod, beside := alone(s, "dev", "-a"), alone(s, "prod", "-b"), alone(s, "prod", "-c")
	const label = "pipelines.weave.works/pipeline: podinfo"
	released(dev, "podinfo", "6.1.6", label)
	released(prod, "podinfo", "6.1.5", label)
	released(prod, "other", "1.0.0", "") // W38: without the label, and in a namespace that no target names
	released(beside, "podinfo", "9.9.9", label)
	prod.Apply(deployed("sidecar", "podinfo:2.0.0", label)) // W42
	s.Logical.Apply(olderPipeline("podinfo", "", environment{"dev", []string{"dev/" + s.Namespace + "-a"}}, environment{"prod", []string{"prod/" + s.Namespace + "-b"}}))
	shows(s, older, "podinfo", "dev", "dev/ HelmRelease/podinfo 6.1.6*")
	shows(s, older, "podinfo", "prod", "prod/ Deployment/sidecar 2.0.0* HelmRelease/podinfo 6.1.5*")
	released(prod, "podinfo", "6.1.6", label)
	shows(s, older, "podinfo", "prod", "prod/ Deployment/sidecar 2.0.0* HelmRelease/podinfo 6.1.6*")

	// What the admin has allowed is there, and no more.
	expect.Says(t, s.Logical.CLI("cluster", "check", "dev", "--cluster-kubeconfig", s.Environment.Clusters["dev"].Kubeconfig()),
		"✓ ClusterRole manifold-syncer-"+framework.IdentityOf(t, s.Environment)[:8]+"-pipelines")
	expect.Says(t, s.Logical.CLI("cluster", "join", "dev", "--dry-run", "--allow-pipelines"), "-pipelines", "helmreleases", "kustomizations")

	// W37: who shows a pipeline asks no cluster, and what is watched is listed once.
	if got := asked(s, "dev", `verb="LIST"`); got > 6 {
		t.Errorf("HelmReleases of dev were listed %d times, and are watched by two labels", got)
	}
	// Other tests have pipelines of their own meanwhile, so that shows once they have none that is new.
	s.Logical.Poll("no cluster is asked when a pipeline is shown", func() error {
		before := asked(s, "dev", "") + asked(s, "prod", "")
		for range 5 {
			s.Logical.Kubectl("get", older, "podinfo", "-o", "yaml")
			s.Logical.Kubectl("describe", older, "podinfo")
		}
		if after := asked(s, "dev", "") + asked(s, "prod", ""); after != before {
			return fmt.Errorf("a pipeline was shown, and clusters had %d requests for HelmReleases more", after-before)
		}
		return nil
	})
}

// asked is how many requests for HelmReleases a cluster had from others than the test, whose commands get and patch.
func asked(s *framework.Scenario, cluster, which string) (out int) {
	s.Helper()
	for line := range strings.Lines(s.Side(cluster).Kubectl("get", "--raw", "/metrics")) {
		counts := strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="helmreleases"`)
		if !counts || !strings.Contains(line, which) || strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		fields := strings.Fields(line)
		count, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			s.Fatalf("%q: %v", line, err)
		}
		out += int(count)
	}
	return out
}

// TestW38ATargetIsShownForAsLongAsItsAuthorMaySeeIt takes rights from who has named the targets of a pipeline, and gives them back.
func TestW38ATargetIsShownForAsLongAsItsAuthorMaySeeIt(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	prod := namespace(s, "prod")
	s.Logical.Apply(deployed("web", "registry.example/web:1.1", "app: web"))
	s.Logical.In(prod).Apply(deployed("web", "registry.example/web:1.0", "app: web"))
	s.Logical.Kubectl("create", "rolebinding", "author", "--clusterrole=edit", "--user=author")
	s.Logical.In(prod).Kubectl("create", "rolebinding", "author", "--clusterrole=view", "--user=author")
	author := func(manifest string) error {
		return framework.Failure(s.Logical.TryInput(manifest, "apply", "-f", "-", "--as=author"))
	}
	manifest := pipeline("web", "Deployment/web", "", environment{"dev", []string{s.Namespace}}, environment{"prod", []string{prod}})
	s.Logical.Poll("the author may define it", func() error { return author(manifest) })
	shows(s, pipelines, "web", "prod", "Deployment/web 1.0*")

	s.Logical.In(prod).Kubectl("delete", "rolebinding", "author")
	shows(s, pipelines, "web", "prod", "")
	shows(s, pipelines, "web", "dev", "Deployment/web 1.1*")
	status, err := told(s, pipelines, "web")
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(status.Conditions, weave.ConditionReady)
	if ready == nil || ready.Reason != "AuthorLacksRight" || !status.Environments["prod"].Targets[0].Denied {
		t.Errorf("Ready is %+v, and prod %+v", ready, status.Environments["prod"])
	}
	expect.Says(t, ready.Message, `"author", who has named this target, has lost the right to list deployments.apps in namespace "`+prod+`"`)
	// Nobody says that it was somebody else.
	s.Logical.Kubectl("annotate", pipelines, "web", "--overwrite", `manifold.dev/authors=[{"user":"manifold-admin","groups":["system:masters"],"targets":["`+prod+`"]}]`, "--as=author")
	if got := s.Logical.Kubectl("get", pipelines, "web", "-o", "jsonpath={.metadata.annotations.manifold\\.dev/authors}"); !strings.Contains(got, `"user":"author"`) || strings.Contains(got, "masters") {
		t.Errorf("noted is %s", got)
	}
	shows(s, pipelines, "web", "prod", "")

	s.Logical.In(prod).Kubectl("create", "rolebinding", "author", "--clusterrole=view", "--user=author")
	shows(s, pipelines, "web", "prod", "Deployment/web 1.0*")
	s.Logical.In(prod).Kubectl("delete", "rolebinding", "author")
	shows(s, pipelines, "web", "prod", "")
	s.Logical.Kubectl("label", pipelines, "web", "of=admin") // by somebody who may see it
	shows(s, pipelines, "web", "prod", "Deployment/web 1.0*")
}

func TestATargetInAClusterShowsWhatManifoldHasPutThereAsItIsThere(t *testing.T) {
	s := scenario(t)
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, "manifold.dev/clusters=dev")
	s.Logical.Apply(deployed("web", "podinfo:6.1.8", ""))
	s.Logical.Apply(pipeline("podinfo", "Deployment/web", "", environment{"dev", []string{"dev/" + s.Namespace}}, environment{"prod", []string{"prod/" + s.Namespace}}))
	shows(s, pipelines, "podinfo", "dev", "dev/ Deployment/web 6.1.8*")
	shows(s, pipelines, "podinfo", "prod", "prod/")
	s.Logical.Kubectl("set", "image", "deployment/web", "web=podinfo:6.1.9")
	shows(s, pipelines, "podinfo", "dev", "dev/ Deployment/web 6.1.9*")
}
