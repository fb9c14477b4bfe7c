package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// mesh is a VirtualService whose requests go to subsets of a host, and that says nothing of clusters.
func mesh(host string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1alpha3
kind: VirtualService
metadata: {name: mesh}
spec:
  hosts: [web.example.com]
  http:
  - route:
    - {destination: {host: %[1]s, subset: primary}, weight: 100}
    - {destination: {host: %[1]s, subset: canary}, weight: 0}
`, host)
}

// subsets are the weights of the first rule of a VirtualService, as a side has it.
func subsets(side *framework.Side, name string) string {
	result := side.Try("get", "virtualservice", name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	var service struct {
		Spec struct {
			HTTP []struct {
				Route []struct {
					Destination struct{ Host, Subset string }
					Weight      int32
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(result.Stdout), &service); err != nil || len(service.Spec.HTTP) == 0 {
		return fmt.Sprintf("no rules: %v", err)
	}
	var out []string
	for _, route := range service.Spec.HTTP[0].Route {
		out = append(out, fmt.Sprintf("%s/%s:%d", route.Destination.Host, route.Destination.Subset, route.Weight))
	}
	return strings.Join(out, " ")
}

// A VirtualService among the manifests, as PipeCD has it, needs neither a name nor a pin: it goes to the clusters of the targets. It takes a ServiceAccount that may
// write it. One that could not share out requests is refused before anything is applied.
func TestAVirtualServiceAmongTheManifestsSharesOutRequests(t *testing.T) {
	s := suite.Scenario(t)
	aloneWithRoutes(s)
	define(s, "../kubevela/testdata/istio.yaml", []string{"virtualservices.networking.istio.io", "gateways.networking.istio.io"}, s.Logical, s.East, s.West)
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "virtualservices.networking.istio.io")
	}
	s.Logical.Apply(account("mesher", `{apiGroups: [""], resources: [services], verbs: [get, list, create, patch, delete]}`,
		"{apiGroups: [apps], resources: [deployments], verbs: [get, list, create, patch, delete]}",
		"{apiGroups: [networking.istio.io], resources: [virtualservices], verbs: [get, list, create, patch, delete]}"))
	app := func(image, as, host string) string {
		routed := routedApp(image, "{method: VirtualService, subsets: true, drainSeconds: 1}", "{canary: 20}", "{primary: 100}")
		return strings.Replace(routed, "spec:\n", "spec:\n"+as, 1) + indented(mesh(host), "      - ", "        ")
	}
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	warned := s.Logical.TryInput(app("web:1", "", "web"), "apply", "--dry-run=server", "-f", "-")
	if framework.Failure(warned) != nil || !strings.Contains(warned.Stderr, "Warning: spec.serviceAccountName: Required value: a VirtualService can take over the hosts of other namespaces") {
		t.Errorf("without a ServiceAccount: %s", warned)
	}

	const as = "  serviceAccountName: mesher\n"
	s.Logical.Apply(app("web:1", as, "web"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	here := func(side *framework.Side) string { return subsets(side, "mesh") }
	awaitIn(&patient, "the route", "web/primary:100 web/canary:0", here)

	s.Logical.Apply(app("web:2", as, "web"))
	waiting := awaitRelease(&patient, "web-v2", "waits for approval", asked)
	for _, side := range []*framework.Side{s.East, s.West} { // the stage is done, so it is so
		if got := here(side); got != "web/primary:80 web/canary:20" {
			t.Errorf("the route is %s", got)
		}
	}
	approve(s, waiting)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitIn(&patient, "the route", "web/primary:100 web/canary:0", here)
	expect.AwaitRuns(&patient, "web", map[string]string{"east": "2 of web:2", "west": "2 of web:2"})

	s.Logical.Apply(app("web:3", as, "other"))
	failed := awaitPhase(&patient, "web-v3", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", `stage back: cluster "east": spec.traffic: VirtualService mesh: spec.http`, "no rule sends requests to Service web")
	if got := s.Logical.Kubectl("get", "deployments", "-o", "name"); strings.TrimSpace(got) != "deployment.apps/web" {
		t.Errorf("nothing was to be applied, and there is %s", got)
	}
}
