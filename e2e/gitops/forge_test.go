package gitops

import (
	"fmt"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/hack/stock/tools"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// namespace makes a further namespace with a name of its own, which goes with the test.
func namespace(s *framework.Scenario, suffix string) *framework.Side {
	s.Helper()
	name := s.Namespace + "-" + suffix
	s.Logical.Kubectl("create", "namespace", name)
	s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "namespace", name, "--wait=false") })
	return s.Logical.In(name)
}

// folder is a folder of the repository for an environment: a Deployment, and the tag that it gets there, whose comment says to whom it belongs.
func folder(pipelines, environment, tag string) map[string]string {
	return map[string]string{
		environment + "/kustomization.yaml": fmt.Sprintf(`resources: [web.yaml]
images:
- name: ghcr.io/acme/web
  newTag: %q # {"$promotion": "%s:web:%s"}
`, tag, pipelines, environment),
		environment + "/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: ghcr.io/acme/web, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`,
	}
}

func both(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, files := range []map[string]string{a, b} {
		for name, content := range files {
			out[name] = content
		}
	}
	return out
}

// brought has Flux bring a folder of the repository to a namespace. Ref is which commit of it.
func brought(g *gitea, to *framework.Side, path, ref string) {
	g.Helper()
	to.Kubectl("create", "secret", "generic", "fleet", "--from-literal=username="+person, "--from-literal=password="+g.token, "--from-literal=ca.crt="+string(g.authority))
	to.Apply(fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: web}
spec: {url: %q, ref: %s, interval: 1s, timeout: 20s, secretRef: {name: fleet}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web}
spec: {path: %q, targetNamespace: %s, sourceRef: {kind: GitRepository, name: web}, interval: 1m, timeout: 1m, prune: true, wait: true}
`, g.cloneURL(), ref, path, to.Namespace))
}

// TestW22W23W43AVersionGoesToProdThroughGiteaAndFlux has the tag of a Deployment go from dev to prod by a pull request that a person merges, and Flux bring to both
// what the repository says.
func TestW22W23W43AVersionGoesToProdThroughGiteaAndFlux(t *testing.T) {
	s := scenario(t)
	dev, prod := namespace(s, "dev"), namespace(s, "prod")
	g := startGitea(s, both(folder(s.Namespace, "dev", "1.0"), folder(s.Namespace, "prod", "1.0")))
	startFlux(s, s.Logical, tools.FluxSource, tools.FluxKustomize)
	brought(g, dev, "./dev", "{branch: main}")
	brought(g, prod, "./prod", "{branch: main}")
	s.Logical.Kubectl("create", "secret", "generic", "forge", "--from-literal=token="+g.token, "--from-literal=ca.crt="+string(g.authority))
	s.Logical.Apply(fmt.Sprintf(`apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: web}
spec:
  appRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  environments:
  - {name: dev, targets: [{namespace: %s}]}
  - {name: prod, targets: [{namespace: %s}]}
  promotion: {strategy: {pull-request: {type: gitea, url: %q, baseBranch: main, secretRef: {name: forge}}}}
`, dev.Namespace, prod.Namespace, g.cloneURL()))
	runs(s, "web", "dev", "Deployment/web", "1.0")
	runs(s, "web", "prod", "Deployment/web", "1.0")

	g.commit(map[string]string{"dev/kustomization.yaml": folder(s.Namespace, "dev", "2.0")["dev/kustomization.yaml"]})
	runs(s, "web", "dev", "Deployment/web", "2.0")
	started := promoted(s, "web", "prod", "2.0", weave.PromotionStarted)
	pulls := g.pulls()
	if len(pulls) != 1 || pulls[0].State != "open" || pulls[0].HTMLURL != started.URL {
		t.Fatalf("the pull requests are %+v, and the status leads to %q", pulls, started.URL)
	}
	expect.Says(t, pulls[0].Title, "Promote "+s.Namespace+"/web in prod to 2.0")
	if got, want := g.file(pulls[0].Head.Ref, "prod/kustomization.yaml"), folder(s.Namespace, "prod", "2.0")["prod/kustomization.yaml"]; got != want {
		t.Errorf("the branch has %q, want %q", got, want)
	}
	g.merge(pulls[0].Number)
	promoted(s, "web", "prod", "2.0", weave.PromotionVerified)
	runs(s, "web", "prod", "Deployment/web", "2.0")

	// One that a person closes is given up, and the next version has one of its own.
	g.commit(map[string]string{"dev/kustomization.yaml": folder(s.Namespace, "dev", "3.0")["dev/kustomization.yaml"]})
	promoted(s, "web", "prod", "3.0", weave.PromotionStarted)
	g.decline(2)
	g.commit(map[string]string{"dev/kustomization.yaml": folder(s.Namespace, "dev", "3.1")["dev/kustomization.yaml"]})
	promoted(s, "web", "prod", "3.1", weave.PromotionStarted)
	if pulls = g.pulls(); len(pulls) != 3 || pulls[1].Merged || pulls[1].State != "closed" || pulls[2].State != "open" {
		t.Errorf("the pull requests are %+v", pulls)
	}
}

// TestW10W17W32AKustomizationOfFluxIsPromotedByItsCommit pins what prod runs to a commit, which the pipeline writes once dev runs it.
func TestW10W17W32AKustomizationOfFluxIsPromotedByItsCommit(t *testing.T) {
	s := scenario(t)
	dev, prod := namespace(s, "dev"), namespace(s, "prod")
	g := startGitea(s, nil)
	first := g.commit(folder(s.Namespace, "all", "1.0"))
	startFlux(s, s.Logical, tools.FluxSource, tools.FluxKustomize)
	brought(g, dev, "./all", "{branch: main}")
	brought(g, prod, "./all", fmt.Sprintf("{branch: main, commit: %s}", first))
	s.Logical.Kubectl("create", "serviceaccount", "promoter")
	prod.Kubectl("create", "role", "promoter", "--verb=get,patch", "--resource=gitrepositories.source.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io")
	prod.Kubectl("create", "rolebinding", "promoter", "--role=promoter", "--serviceaccount="+s.Namespace+":promoter")
	s.Logical.Apply(fmt.Sprintf(`apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: web}
spec:
  appRef: {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: web}
  environments:
  - {name: dev, targets: [{namespace: %s}]}
  - {name: prod, targets: [{namespace: %s}]}
  promotion: {strategy: {direct: {serviceAccountName: promoter}}}
`, dev.Namespace, prod.Namespace))
	runs(s, "web", "prod", "Kustomization/web", "main@sha1:"+first)

	second := g.commit(map[string]string{"all/kustomization.yaml": folder(s.Namespace, "all", "2.0")["all/kustomization.yaml"]})
	runs(s, "web", "dev", "Kustomization/web", "main@sha1:"+second)
	promoted(s, "web", "prod", "main@sha1:"+second, weave.PromotionVerified)
	runs(s, "web", "prod", "Kustomization/web", "main@sha1:"+second)
	if image := prod.Kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); image != "ghcr.io/acme/web:2.0" {
		t.Errorf("prod runs %s", image)
	}
	// What Flux says that it has made, and where that comes from.
	expect.Says(t, s.Logical.CLI("pipeline", "get", "web", "--related", "prod"), "Kustomization "+prod.Namespace+"/web", "GitRepository", g.cloneURL(), "Deployment "+prod.Namespace+"/web")
}
