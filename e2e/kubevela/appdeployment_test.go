package kubevela

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
)

// application makes a revision of every change, and runs none of them by itself.
func application(image string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: example-app, annotations: {app.oam.dev/rollout-template: "true"}}
spec:
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: Service
        metadata: {name: example-app}
        spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {image: "%[1]s"}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 5
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers:
              - {name: web, image: "%[1]s", envFrom: [{configMapRef: {name: settings}}], resources: {requests: {cpu: 10m, memory: 16Mi}}}
`, image)
}

// deployment is an ApplicationDeployment with so much of its spec. Its own cluster is west.
func deployment(spec string) string {
	return "apiVersion: core.oam.dev/v1beta1\nkind: ApplicationDeployment\nmetadata: {name: example-app}\nspec:\n  trafficMode: Istio\n  homeCluster: west\n" + spec
}

// rules share out the requests to some paths over both revisions.
func rules(first, second int) string {
	return fmt.Sprintf(`
  drainSeconds: 1
  trafficRules:
  - {name: web, match: [{uri: {prefix: /web}}], weightedTargets: [{revisionName: 1, percent: %d}, {revisionName: 2, percent: %d}]}
`, first, second)
}

const (
	first = `
  - name: 1
    reference: example-app-v1
    placement:
    - {clusterSelector: {labels: {usage: production}}, distribution: {weight: 50}}
    - {distribution: {weight: 50}}
    service: {http: {host: v1.example.com, tls: {mode: mutual}}}
`
	second = `
  - name: 2
    ref: example-app-v2
    placement: [{clusterSelector: {name: west}}]
`
)

// install makes the kinds known: ours as the docs say, and Istio's everywhere.
func install(s *framework.Scenario) {
	s.Helper()
	s.Logical.Kubectl("apply", "-k", "../../config/crds/kubevela")
	istio, err := os.ReadFile("testdata/istio.yaml")
	if err != nil {
		s.Fatal(err)
	}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		side.Apply(string(istio))
		side.Established(string(istio))
	}
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "virtualservices.networking.istio.io", "--allow-kind", "gateways.networking.istio.io")
	}
	s.Logical.Kubectl("label", "clusters", "east", "usage=production", "--overwrite")
	s.Logical.Poll("the definition is established", func() error {
		return framework.Failure(s.Logical.Try("wait", "--for=condition=Established", "--timeout=20s", "crd/applicationdeployments.core.oam.dev", "crd/appdeployments.core.oam.dev"))
	})
}

// apply retries for as long as the server has not heard of the kind.
func apply(s *framework.Scenario, manifest string) {
	s.Helper()
	s.Logical.Poll("it can be applied", func() error { return framework.Failure(s.Logical.TryInput(manifest, "apply", "-f", "-")) })
}

// release applies the application and waits for its revision.
func release(s *framework.Scenario, image, revision string) {
	s.Helper()
	s.Logical.Apply(application(image))
	s.Logical.Poll("there is revision "+revision, func() error {
		return framework.Failure(s.Logical.Try("get", "applicationrevision", revision))
	})
}

// look reads an ApplicationDeployment.
func look(s *framework.Scenario, name string) (oam.Object, error) {
	s.Helper()
	var out oam.Object
	result := s.Logical.Try("get", name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return out, err
	}
	return out, json.Unmarshal([]byte(result.Stdout), &out)
}

// await waits until the status of an ApplicationDeployment is as it should be.
func await(s *framework.Scenario, name, claim string, check func(oam.Object) error) {
	s.Helper()
	s.Logical.Poll(claim, func() error {
		got, err := look(s, name)
		if err != nil {
			return err
		}
		if got.Status.ObservedGeneration != got.Generation {
			return fmt.Errorf("its status is about generation %d, of %d", got.Status.ObservedGeneration, got.Generation)
		}
		return check(got)
	})
}

// missing says that what was asked for is not there.
func missing(result framework.Result) error {
	if strings.Contains(result.Stderr, "NotFound") {
		return nil
	}
	return fmt.Errorf("there is still: %s", result)
}

// is says that a condition has a status and says something.
func is(kind string, status metav1.ConditionStatus, says string) func(oam.Object) error {
	return func(got oam.Object) error {
		found := meta.FindStatusCondition(got.Status.Conditions, kind)
		if found == nil || found.Status != status || !strings.Contains(found.Message, says) {
			return fmt.Errorf("conditions are %+v, placement is %+v", got.Status.Conditions, got.Status.Placement)
		}
		return nil
	}
}

var ready = is(oam.ConditionReady, metav1.ConditionTrue, "")

// weights are those of the destinations in the first rule of a VirtualService, as a side has it.
func weights(side *framework.Side, name string) string {
	result := side.Try("get", "virtualservice", name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	var got struct {
		Spec struct {
			HTTP []struct {
				Match []struct {
					URI struct {
						Prefix string `json:"prefix"`
					} `json:"uri"`
				} `json:"match"`
				Route []struct {
					Destination struct {
						Host string `json:"host"`
					} `json:"destination"`
					Weight int `json:"weight"`
				} `json:"route"`
			} `json:"http"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(result.Stdout), &got); err != nil || len(got.Spec.HTTP) == 0 {
		return fmt.Sprintf("no rules: %v", err)
	}
	var out []string
	for _, match := range got.Spec.HTTP[0].Match {
		out = append(out, match.URI.Prefix)
	}
	for _, route := range got.Spec.HTTP[0].Route {
		out = append(out, fmt.Sprintf("%s:%d", route.Destination.Host, route.Weight))
	}
	return strings.Join(out, " ")
}

func awaitWeights(s *framework.Scenario, inEast, inWest string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("requests go to %q in east, and to %q in west", inEast, inWest), func() error {
		if got := weights(s.East, "example-app") + ", " + weights(s.West, "example-app"); got != inEast+", "+inWest {
			return fmt.Errorf("they go to %s", got)
		}
		return nil
	})
}

// versions are the resource versions of what is made of a revision, and pods the UIDs of its pods.
func versions(s *framework.Scenario, revision string) string {
	s.Helper()
	return s.Logical.Kubectl("get", "deployment/web-"+revision, "service/example-app-"+revision, "configmap/settings-"+revision, "-o", "jsonpath={.items[*].metadata.generation}") +
		s.Logical.Kubectl("get", "pods", "-l", "delivery.manifold.dev/variant="+revision, "-o", "jsonpath={.items[*].metadata.uid}")
}

// Revisions run side by side, each in its clusters, with its part of the requests; one takes the place of the other without a gap, and in the end nothing is left,
// also in a cluster that was away.
func TestAnApplicationDeploymentFromItsFirstRevisionToItsEnd(t *testing.T) {
	s := suite.Fragile(t)
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	install(s)
	if got := s.Logical.Kubectl("explain", "applicationdeployment.spec.trafficRules.weightedTargets.percent"); !strings.Contains(got, "over all clusters together") {
		t.Errorf("kubectl explains %s", got)
	}
	release(s, "web:1", "example-app-v1")
	release(s, "web:2", "example-app-v2")
	if got := s.Logical.Kubectl("get", "releases,deployments", "-o", "name"); got != "" { // K20
		t.Errorf("a revision alone makes %s", got)
	}
	refused := s.Logical.TryInput(deployment(rules(50, 40)+"  appRevisions:"+first+second), "apply", "-f", "-")
	if !strings.Contains(refused.Stderr, "spec.trafficRules[0].weightedTargets: Invalid value") || !strings.Contains(refused.Stderr, "the percents must add up to 100") {
		t.Errorf("percents of 90 together: %s", refused.Stderr)
	}

	apply(s, deployment("  appRevisions:"+first))
	await(&patient, "applicationdeployment/example-app", "revision 1 is ready", ready)
	expect.AwaitRuns(s, "web-v1", map[string]string{"east": "3 of web:1", "west": "2 of web:1"}) // K11, K14, K15
	if got, want := s.West.Kubectl("get", "service", "example-app-v1", "-o", `jsonpath={.spec.selector}`), `{"app":"web","delivery.manifold.dev/variant":"v1"}`; got != want {
		t.Errorf("the Service of revision 1 leads to %s, want %s", got, want)
	}
	s.East.Poll("the Gateway of revision 1 is there", func() error { // K17, K18
		got := s.East.Try("get", "gateway", "example-app-v1", "-o", "jsonpath={.spec.servers[0].tls.mode} {.spec.servers[0].hosts[0]}")
		if got.Stdout != "MUTUAL ./v1.example.com" {
			return fmt.Errorf("it says %s", got)
		}
		return nil
	})

	before := versions(s, "v1")
	apply(s, deployment(rules(50, 50)+"  appRevisions:"+first+second))
	await(&patient, "applicationdeployment/example-app", "both revisions are ready", ready)
	expect.AwaitRuns(s, "web-v1", map[string]string{"east": "3 of web:1", "west": "2 of web:1"})
	expect.AwaitRuns(s, "web-v2", map[string]string{"east": "nothing", "west": "5 of web:2"}) // K12, K39
	awaitWeights(s, "/web example-app-v1:100", "/web example-app-v1:29 example-app-v2:71")
	if got := s.Logical.Kubectl("get", "virtualservice", "example-app", "-o", "jsonpath={.spec.http[0].route[*].weight}"); got != "50 50" { // K31
		t.Errorf("above the weights are %s", got)
	}
	apply(s, deployment(rules(10, 90)+"  appRevisions:"+first+second))
	awaitWeights(s, "/web example-app-v1:100", "/web example-app-v1:4 example-app-v2:96")
	if after := versions(s, "v1"); after != before { // K25, K33
		t.Errorf("revision 1 was changed: %s, and was %s", after, before)
	}
	await(&patient, "applicationdeployment/example-app", "the status tells of each cluster", func(got oam.Object) error { // K41
		var told []string
		for _, revision := range got.Status.Placement {
			for _, cluster := range revision.Clusters {
				told = append(told, fmt.Sprintf("%s %s %d/%d", revision.Reference, cluster.Cluster, cluster.Ready, cluster.Wanted))
			}
		}
		if want := []string{"example-app-v1 east 3/3", "example-app-v1 west 2/2", "example-app-v2 west 5/5"}; !slices.Equal(told, want) {
			return fmt.Errorf("it tells %v, want %v", told, want)
		}
		return nil
	})

	absent := strings.Replace(second, "example-app-v2", "example-app-v9", 1)
	apply(s, deployment("  appRevisions:"+first+absent))
	await(&patient, "applicationdeployment/example-app", "the missing revision is named", is(oam.ConditionRevisions, metav1.ConditionFalse, "ApplicationRevision example-app-v9"))
	if got := expect.Runs(s, "west", "web-v1") + ", " + expect.Runs(s, "west", "web-v2"); got != "2 of web:1, 5 of web:2" { // K10
		t.Errorf("while a revision is missing west runs %s", got)
	}

	// West is away while revision 2 is to take the place of revision 1, so that stays.
	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	s.Logical.Kubectl("wait", "cluster/west", "--for=condition=Answering=False", "--timeout=1m") // until then it counts as it was
	apply(s, deployment("  drainSeconds: 1\n  appRevisions:"+second))
	await(&patient, "applicationdeployment/example-app", "what it waits for is told", is(oam.ConditionReady, metav1.ConditionFalse, `in cluster "west": the cluster does not answer`))
	if got := expect.Runs(s, "east", "web-v1"); got != "3 of web:1" { // K26
		t.Errorf("east runs %s of revision 1 before revision 2 is ready", got)
	}
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	await(&patient, "applicationdeployment/example-app", "revision 1 has gone", func(got oam.Object) error {
		if len(got.Status.Placement) != 1 {
			return fmt.Errorf("placement is %+v", got.Status.Placement)
		}
		return ready(got)
	})
	expect.AwaitRuns(&patient, "web-v1", map[string]string{"east": "nothing", "west": "nothing"}) // K22
	expect.AwaitRuns(&patient, "web-v2", map[string]string{"east": "nothing", "west": "5 of web:2"})
	s.Logical.Poll("the rules have gone", func() error { // K37
		return missing(s.Logical.Try("get", "virtualservice", "example-app"))
	})

	if err := west.PauseAll(); err != nil { // K40
		t.Fatal(err)
	}
	s.Logical.Kubectl("delete", "applicationdeployment", "example-app", "--wait=false")
	patient.Logical.Poll("the object stays for as long as west may have something", func() error {
		got, err := look(s, "applicationdeployment/example-app")
		if err != nil {
			return err
		}
		return is(oam.ConditionReady, metav1.ConditionFalse, "Deployment/web-v2 in west")(got)
	})
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	patient.Logical.Poll("the object has gone", func() error {
		return missing(s.Logical.Try("get", "applicationdeployment", "example-app"))
	})
	expect.AwaitRuns(&patient, "web-v2", map[string]string{"east": "nothing", "west": "nothing"})
	s.Logical.Poll("nothing is left above", func() error {
		if got := s.Logical.Kubectl("get", "deployments,services,configmaps,placementpolicies", "-l", "delivery.manifold.dev/application=example-app.oam", "-o", "name"); got != "" {
			return fmt.Errorf("left are %s", got)
		}
		return nil
	})
}

// The alias, with the words of 2021, and what runs already: no Application is needed, and no Istio.
func TestAnAppDeploymentOfADeploymentThatIsThere(t *testing.T) {
	s := suite.Fragile(t)
	patient := *s
	patient.Logical = s.Logical.Within(3 * time.Minute)
	install(s)
	web := func(image string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {manifold.dev/clusters: east}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "%s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]}
`, image)
	}
	for _, image := range []string{"web:1", "web:2"} {
		s.Logical.Apply(web(image))
		s.Logical.Poll(image+" runs", func() error {
			if got := expect.Runs(s, "east", "web"); got != "4 of "+image {
				return fmt.Errorf("east runs %s", got)
			}
			return nil
		})
	}
	s.Logical.Poll("the history has both", func() error {
		return framework.Contains(s.Logical.Kubectl("rollout", "history", "deployment/web"), "1 ", "2 ")
	})
	apply(s, `
apiVersion: core.oam.dev/v1beta1
kind: AppDeployment
metadata: {name: web}
spec:
  traffic: {hosts: [web.example.com], http: [{weightedTargets: [{revisionName: one}, {revisionName: two}]}]}
  appRevisions:
  - {name: one, reference: {kind: Deployment, name: web, revision: 1}, placement: [{clusterSelector: {name: east}, distribution: {replicas: 3}}, {clusterSelector: {name: west}, distribution: {replicas: 1}}]}
  - {name: two, reference: {kind: Deployment, name: web}, placement: [{clusterSelector: {name: west}, distribution: {weight: 1}}]}
`)
	await(&patient, "appdeployment/web", "both revisions are ready", ready)
	expect.AwaitRuns(s, "web-one", map[string]string{"east": "3 of web:1", "west": "1 of web:1"}) // K43
	expect.AwaitRuns(s, "web-two", map[string]string{"east": "nothing", "west": "4 of web:2"})
	expect.AwaitRuns(s, "web", map[string]string{"east": "4 of web:2", "west": "nothing"})
	want := "web.example.com /one web-one:8080 /two web-two:8080"
	s.Logical.Poll("each revision has a path", func() error { // K34
		got := s.Logical.Kubectl("get", "ingress", "web", "-o",
			"jsonpath={.spec.rules[0].host}{range .spec.rules[0].http.paths[*]} {.path} {.backend.service.name}:{.backend.service.port.number}{end}")
		if got != want {
			return fmt.Errorf("the Ingress is %s, want %s", got, want)
		}
		return nil
	})
	s.Logical.Kubectl("delete", "appdeployment", "web", "--timeout=60s")
	expect.AwaitRuns(s, "web-one", map[string]string{"east": "nothing", "west": "nothing"})
	expect.AwaitRuns(s, "web", map[string]string{"east": "4 of web:2", "west": "nothing"}) // which is its users' own
}
