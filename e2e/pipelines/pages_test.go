package pipelines

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/page"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges/forgetest"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// written has a file that a page does not write, and returns its path.
func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestW31ThePagesFromAnEmptyRepositoryToProdAndFromCIAreTrue does what both pages say, one after the other, as they are about one app. Of its own it has what the pages
// leave to their readers: the forge and its token, where the webhooks are, and a CI that runs the last step.
func TestW31ThePagesFromAnEmptyRepositoryToProdAndFromCIAreTrue(t *testing.T) {
	framework.Long(t)
	address := freeAddress(t)
	s := framework.NewScenario(t, framework.StartOwn(t, framework.Options{
		Clusters: []string{"east", "west"}, ManifoldArgs: []string{"--promotion-webhook-address=" + address, "--outbound-networks=127.0.0.0/8"},
	}))
	forge := forgetest.New(t, weave.ForgeGitHub, nil)
	authority := written(t, "ca.crt", forge.CA())
	definitions, err := filepath.Abs(definitions)
	if err != nil {
		t.Fatal(err)
	}
	r := page.NewReader(s)
	r.Git("url."+strings.Replace(forge.URL, "://", "://ada:"+forgetest.Token+"@", 1)+".insteadOf", forge.URL)
	r.Env = append(r.Env, "GIT_SSL_CAINFO="+authority, "FORGE_TOKEN="+forgetest.Token, "HMAC_KEY="+signingKey, "WEBHOOKS=https://"+address,
		"CURL_CA_BUNDLE="+written(t, "serving.crt", authorityOf(t, s)))
	const token = `--from-literal=token="$FORGE_TOKEN"`
	r.Names = []string{
		"https://github.com/acme/shop/pull", strings.TrimSuffix(forge.CloneURL(), ".git") + "/pull", "https://github.com/acme/shop", forge.CloneURL(),
		"config/crds/weave", definitions, token, token + " --from-file=ca.crt=" + authority,
	}
	r.Elsewhere["git -C shop pull"] = func() { forge.Merge(1) }
	r.Follow("delivery/pipelines-guide.md")

	r.Elsewhere = map[string]func(){"body=": func() { lastStep(r, "nginx", "1.32") }}
	r.Follow("delivery/pipelines-tekton.md")
	s.Logical.In("web-dev").Poll("prod runs what CI has published", func() error {
		return framework.Contains(s.Logical.In("web-dev").CLI("pipeline", "get", "web"), "Verified 1.32")
	})
	if got := s.Logical.Try("auth", "can-i", "patch", "deployments.apps", "-n", "web-prod", "--as=system:serviceaccount:web-dev:ci"); !strings.HasPrefix(got.Stdout, "no") {
		t.Errorf("CI may write what prod runs: %+v", got)
	}
}

// TestThePageForWhoComesFromWeaveGitOpsIsTrue begins with Weave's own definition of the kind, and with the manifests that were applied with it.
func TestThePageForWhoComesFromWeaveGitOpsIsTrue(t *testing.T) {
	framework.Long(t)
	s := framework.NewScenario(t, framework.StartOwn(t, framework.Options{Clusters: []string{"dev"}}))
	definitions, err := filepath.Abs(definitions)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Abs("testdata/weave/manifests")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := os.ReadFile("testdata/weave/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Logical.Apply(string(kind))
	s.Logical.Established(string(kind))
	for _, name := range []string{"ops", "podinfo"} {
		s.Logical.Kubectl("create", "namespace", name)
	}
	ops := s.Logical.In("ops")
	ops.Poll("the pipeline is taken as Weave's", func() error {
		return framework.Failure(ops.Try("apply", "-f", filepath.Join(manifests, "podinfo.yaml")))
	})
	const of = "jsonpath={.metadata.uid} {.spec.environments[*].name}"
	before := ops.Kubectl("get", pipelines, "podinfo", "-o", of)

	r := page.NewReader(s)
	r.Names = []string{"config/crds/weave", definitions, "-f pipelines/", "-f " + manifests}
	r.Elsewhere["kubectl apply -k config/crds/weave"] = func() {
		// What people ask has no place in the status yet, and is not lost in silence.
		if got := ops.TryCLI("pipeline", "pause", "podinfo"); got.Code == 0 || !strings.Contains(got.Stderr, "its definition keeps no") {
			t.Errorf("a pause with Weave's definition: %+v", got)
		}
	}
	r.Elsewhere["kubectl apply -f pipelines/"] = func() { served(s, pipelines, older, gitopsClusters) }
	r.Follow("delivery/from-weave-gitops.md")

	if after := ops.Kubectl("get", pipelines, "podinfo", "-o", of); after != before {
		t.Errorf("the pipeline was %s, and is %s", before, after)
	}
	ops.Poll("both pipelines are listed", func() error {
		return framework.Contains(ops.CLI("pipeline", "list"), "podinfo", "labelled", "pipelines.weave.works", "pipelines.wego.weave.works")
	})
	contains(s, ops.CLI("pipeline", "pause", "podinfo"), "pipeline/podinfo paused")
	contains(s, ops.CLI("pipeline", "get", "podinfo"), "HelmRelease/podinfo", "dev", "prod", "POST /approval/ops/podinfo/prod/REVISION")
	ops.Poll("the GitopsCluster follows the Cluster", func() error {
		return framework.Contains(ops.Kubectl("get", gitopsClusters, "dev", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`), "True")
	})
}

// authorityOf is the certificate that what the logical cluster serves is signed by.
func authorityOf(t *testing.T, s *framework.Scenario) []byte {
	t.Helper()
	config := s.Environment.Logical.Config
	if len(config.CAData) > 0 {
		return config.CAData
	}
	content, err := os.ReadFile(config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// lastStep runs the last step of the page's pipeline of Tekton, as the ServiceAccount that the page makes for it.
func lastStep(r *page.Reader, image, tag string) {
	r.Helper()
	var ci struct {
		Spec struct {
			Tasks []struct {
				Name     string
				TaskSpec struct {
					Steps []struct{ Command []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(r.File("ci.yaml"), &ci); err != nil {
		r.Fatal(err)
	}
	tasks := ci.Spec.Tasks
	if len(tasks) == 0 {
		r.Fatal("the page's pipeline of Tekton has no tasks")
	}
	command := slices.Clone(tasks[len(tasks)-1].TaskSpec.Steps[0].Command)
	for i := range command {
		command[i] = strings.NewReplacer("$(params.image)", image, "$(params.tag)", tag).Replace(command[i])
	}
	if command[0] != "kubectl" {
		r.Fatalf("the last step runs %q", command)
	}
	r.Logical.Poll("CI sets what dev runs", func() error {
		return framework.Failure(r.Logical.Try(append(command[1:], "--as=system:serviceaccount:web-dev:ci")...))
	})
}
