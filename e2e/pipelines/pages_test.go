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
