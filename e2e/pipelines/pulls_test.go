package pipelines

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges/forgetest"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// promotable is a Deployment of one image, as it lies in a repository. Behind its image stands a comment.
func promotable(namespace, tag, comment string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s} # of the shop
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: "ghcr.io/acme/web:%s" %s
        resources: {requests: {cpu: 10m, memory: 16Mi}}
`, namespace, tag, comment)
}

// fleet is a forge with the manifests of two namespaces, which run them, and a pipeline from one to the other by pull requests.
func fleet(t *testing.T, comment func(s *framework.Scenario, environment string) string) (s *framework.Scenario, forge *forgetest.Forge, dev, prod string) {
	t.Helper()
	s = scenario(t)
	dev, prod = namespace(s, "dev"), namespace(s, "prod")
	files := map[string]string{"dev/web.yaml": promotable(dev, "1.0", comment(s, "dev")), "prod/web.yaml": promotable(prod, "1.0", comment(s, "prod"))}
	forge = forgetest.New(t, weave.ForgeGitea, files)
	s.Logical.In(dev).Apply(files["dev/web.yaml"])
	s.Logical.In(prod).Apply(files["prod/web.yaml"])
	s.Logical.Kubectl("create", "secret", "generic", "fleet", "--from-literal=token="+forgetest.Token, "--from-literal=ca.crt="+string(forge.CA()))
	s.Logical.Apply(pipeline("web", "Deployment/web", fmt.Sprintf(
		"  promotion: {strategy: {pull-request: {type: gitea, url: %q, baseBranch: main, secretRef: {name: fleet}}}}\n", forge.CloneURL()),
		environment{"dev", []string{dev}}, environment{"prod", []string{prod}}))
	return s, forge, dev, prod
}

// promotedTo waits until the promotion to an environment stands as it should, and returns it.
func promotedTo(s *framework.Scenario, environment, revision string, phase weave.PromotionPhase, says string) weave.PromotionStatus {
	s.Helper()
	var out weave.PromotionStatus
	s.Logical.Poll(fmt.Sprintf("the promotion of %s to %s is %s", revision, environment, phase), func() error {
		result := s.Logical.Try("get", pipelines, "web", "-o", "json")
		if err := framework.Failure(result); err != nil {
			return err
		}
		var read weave.Pipeline
		if err := json.Unmarshal([]byte(result.Stdout), &read); err != nil {
			return err
		}
		of := read.Status.Environments[environment]
		if of == nil || of.Promotion == nil || of.Promotion.Revision != revision || of.Promotion.Phase != phase || !strings.Contains(of.Promotion.Message, says) {
			return fmt.Errorf("the status is %s", result.Stdout)
		}
		out = *of.Promotion
		return nil
	})
	return out
}

func TestW22W23W43AVersionIsPromotedByThePullRequestThatPeopleMerge(t *testing.T) {
	s, forge, dev, prod := fleet(t, func(s *framework.Scenario, environment string) string {
		return fmt.Sprintf("# {\"$promotion\": \"%s:web:%s\"}", s.Namespace, environment)
	})
	s.Logical.In(dev).Apply(promotable(dev, "2.0", ""))
	status := promotedTo(s, "prod", "2.0", weave.PromotionStarted, "")
	pulls := forge.Pulls()
	if len(pulls) != 1 || pulls[0].State != "open" || status.URL != fmt.Sprintf("%s/pulls/1", strings.TrimSuffix(forge.CloneURL(), ".git")) {
		t.Fatalf("the pull requests are %+v, and the status leads to %q", pulls, status.URL)
	}
	expect.Says(t, pulls[0].Title, "Promote "+s.Namespace+"/web in prod to 2.0")
	expect.Says(t, pulls[0].Body, "prod/web.yaml:12: ghcr.io/acme/web:1.0 -> ghcr.io/acme/web:2.0")
	want := promotable(prod, "2.0", fmt.Sprintf("# {\"$promotion\": \"%s:web:prod\"}", s.Namespace))
	if got := forge.File(pulls[0].Head, "prod/web.yaml"); got != want {
		t.Errorf("the branch has %q, want %q", got, want)
	}

	forge.Merge(1)
	s.Logical.In(prod).Apply(forge.File("main", "prod/web.yaml")) // as Flux does
	promotedTo(s, "prod", "2.0", weave.PromotionVerified, "")

	s.Logical.In(dev).Apply(promotable(dev, "3.0", ""))
	promotedTo(s, "prod", "3.0", weave.PromotionStarted, "")
	forge.Decline(2)
	s.Logical.In(dev).Apply(promotable(dev, "3.1", ""))
	promotedTo(s, "prod", "3.1", weave.PromotionStarted, "")
	if got := forge.Pulls(); len(got) != 3 || got[2].State != "open" || got[1].State != "closed" {
		t.Errorf("the pull requests are %+v", got)
	}
}

// TestW43TheTagThatAKustomizationGivesAnImageIsPromotedWithoutAMarker has the manifest in a base, which no environment has of its own.
func TestW43TheTagThatAKustomizationGivesAnImageIsPromotedWithoutAMarker(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	dev, prod := namespace(s, "dev"), namespace(s, "prod")
	overlay := func(namespace, tag string) string {
		return fmt.Sprintf("namespace: %s\nresources: [../base]\nimages:\n- name: ghcr.io/acme/web # of the shop\n  newTag: %q\n", namespace, tag)
	}
	forge := forgetest.New(t, weave.ForgeGitea, map[string]string{
		"base/web.yaml": strings.Replace(promotable("", "unset", ""), ", namespace: ", "", 1), "base/kustomization.yaml": "resources: [web.yaml]\n",
		"dev/kustomization.yaml": overlay(dev, "1.0"), "prod/kustomization.yaml": overlay(prod, "1.0"),
	})
	s.Logical.In(dev).Apply(promotable(dev, "1.0", ""))
	s.Logical.In(prod).Apply(promotable(prod, "1.0", ""))
	s.Logical.Kubectl("create", "secret", "generic", "fleet", "--from-literal=token="+forgetest.Token, "--from-literal=ca.crt="+string(forge.CA()))
	s.Logical.Apply(pipeline("web", "Deployment/web", fmt.Sprintf(
		"  promotion: {strategy: {pull-request: {type: gitea, url: %q, baseBranch: main, secretRef: {name: fleet}}}}\n", forge.CloneURL()),
		environment{"dev", []string{dev}}, environment{"prod", []string{prod}}))

	s.Logical.In(dev).Apply(promotable(dev, "2.0", ""))
	promotedTo(s, "prod", "2.0", weave.PromotionStarted, "")
	pulls := forge.Pulls()
	if len(pulls) != 1 {
		t.Fatalf("the pull requests are %+v", pulls)
	}
	for file, want := range map[string]string{"prod/kustomization.yaml": overlay(prod, "2.0"), "dev/kustomization.yaml": overlay(dev, "1.0"), "base/web.yaml": forge.File("main", "base/web.yaml")} {
		if got := forge.File(pulls[0].Head, file); got != want {
			t.Errorf("the branch has %s %q, want %q", file, got, want)
		}
	}
}

func TestW25APromotionThatTheRepositoryDoesNotTakeResumesOnceItDoes(t *testing.T) {
	framework.Long(t)
	s, forge, dev, prod := fleet(t, func(*framework.Scenario, string) string { return "" })
	forge.Commit("main", map[string]string{"copy/web.yaml": promotable(prod, "1.0", "")})
	s.Logical.In(dev).Apply(promotable(dev, "2.0", ""))
	if status := promotedTo(s, "prod", "2.0", weave.PromotionFailed, "copy/web.yaml:1, prod/web.yaml:1"); !status.Refused {
		t.Errorf("it does not say that it waits for a change: %+v", status)
	}
	if pulls, branches := forge.Pulls(), forge.Branches(); len(pulls) > 0 || len(branches) > 1 {
		t.Errorf("something was done half way: %+v, %v", pulls, branches)
	}
	forge.Commit("main", map[string]string{"copy/web.yaml": "{}"})
	promotedTo(s, "prod", "2.0", weave.PromotionStarted, "")
	if got := forge.File(forge.Pulls()[0].Head, "prod/web.yaml"); got != promotable(prod, "2.0", "") {
		t.Errorf("the branch has %q", got)
	}
}
