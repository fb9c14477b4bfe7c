package traffic

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/datapath/mesh"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
)

// revision makes a revision of an Application, and no release of it.
func revision(version string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: example-app, annotations: {app.oam.dev/revision-only: "true"}}
spec:
  source:
    inline:
      objects:
      - apiVersion: v1
        kind: Service
        metadata: {name: example-app}
        spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 4
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}, annotations: {kwok.x-k8s.io/start: 500ms}}
            spec:
              terminationGracePeriodSeconds: 5
              containers: [{name: web, image: "web:%s", ports: [{containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, version)
}

// deployed is an ApplicationDeployment whose rule gives revisions of an application percents of the requests. Each revision is in both clusters.
func deployed(percents map[int]int) string {
	targets, revisions := "", ""
	for _, n := range []int{1, 2} {
		if percent, runs := percents[n]; runs {
			targets += fmt.Sprintf("{revisionName: %d, percent: %d}, ", n, percent)
			revisions += fmt.Sprintf(`
  - name: %d
    reference: example-app-v%d
    placement:
    - {clusterSelector: {name: east}, distribution: {weight: 50}}
    - {clusterSelector: {name: west}, distribution: {weight: 50}}
`, n, n)
		}
	}
	return fmt.Sprintf(`
apiVersion: core.oam.dev/v1beta1
kind: ApplicationDeployment
metadata: {name: example-app}
spec:
  trafficMode: Istio
  homeCluster: west
  drainSeconds: 5
  trafficRules:
  - {name: web, match: [{uri: {prefix: /web}}], weightedTargets: [%s]}
  appRevisions:%s`, targets, revisions)
}

// deploy applies an ApplicationDeployment and waits until all is as it says.
func deploy(s *scenario, percents map[int]int) {
	s.Helper()
	s.Logical.Poll("it is applied", func() error { return framework.Failure(s.Logical.TryInput(deployed(percents), "apply", "-f", "-")) })
	s.Logical.Within(3*time.Minute).Poll(fmt.Sprintf("requests are shared out as %v", percents), func() error {
		result := s.Logical.Try("get", "applicationdeployment", "example-app", "-o", "json")
		if err := framework.Failure(result); err != nil {
			return err
		}
		var got oam.Object
		if err := json.Unmarshal([]byte(result.Stdout), &got); err != nil {
			return err
		}
		if got.Status.ObservedGeneration != got.Generation || !meta.IsStatusConditionTrue(got.Status.Conditions, oam.ConditionReady) {
			return fmt.Errorf("generation %d is seen of %d, and conditions are %+v", got.Status.ObservedGeneration, got.Generation, got.Status.Conditions)
		}
		return nil
	})
}

// throughMesh asks the rule of the application by way of a sidecar in a cluster. What that cannot hand on is logged.
func throughMesh(s *scenario, cluster string) *load.Load {
	s.Helper()
	client, err := s.network.Client(datapath.From{Cluster: cluster, Namespace: s.Namespace})
	if err != nil {
		s.Fatal(err)
	}
	sidecar, err := mesh.Start(s.Context(), mesh.Options{Cluster: s.Side(cluster).Dynamic, Namespace: s.Namespace, Client: client})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		sidecar.Stop()
		if err := sidecar.Failed(); err != nil {
			s.Logf("the sidecar in %s: %v", cluster, err)
		}
	})
	out := load.Start(load.Options{URL: sidecar.URL + "/web", Host: "example-app", Rate: rate, Timeout: 10 * time.Second, Expect: func(a pods.Answer) error {
		if a.Namespace != s.Namespace || a.Cluster != cluster {
			return fmt.Errorf("answered from namespace %q of cluster %q", a.Namespace, a.Cluster)
		}
		return nil
	}})
	s.Cleanup(func() { out.Stop() })
	return out
}

// K5 and K29: while one revision takes the place of another one, requests are shared out over both as the rule says, and none fails.
func TestK5AndK29RevisionsGetTheirPartsOfTheRequestsAndNoneFailsWhileOneTakesThePlaceOfTheOther(t *testing.T) {
	s := newScenario(t)
	istio, err := os.ReadFile("../kubevela/testdata/istio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Logical.Kubectl("apply", "-k", "../../config/crds/kubevela")
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		side.Apply(string(istio))
		side.Established(string(istio))
	}
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "virtualservices.networking.istio.io", "--allow-kind", "gateways.networking.istio.io")
	}
	for _, version := range []string{"v1", "v2"} {
		s.Logical.Apply(revision(version))
		s.Logical.Poll("there is revision example-app-"+version, func() error {
			return framework.Failure(s.Logical.Try("get", "applicationrevision", "example-app-"+version))
		})
	}
	deploy(s, map[int]int{1: 100})
	whole := map[string]*load.Load{"east": throughMesh(s, "east"), "west": throughMesh(s, "west")}

	deploy(s, map[int]int{1: 80, 2: 20})
	for cluster := range whole {
		counting := throughMesh(s, cluster)
		s.Logical.Poll("a thousand requests are answered", func() error {
			if r := counting.Report(); r.Sent < 1000 {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
		report := counting.Stop()
		got := 100 * float64(report.Versions["v2"]) / float64(report.Sent)
		t.Logf("%s: revision 2 got %.1f %% of %d requests, of which 20 %% are wanted", cluster, got, report.Sent)
		if report.Failed > 0 || got < 16 || got > 24 {
			t.Errorf("%s: %s: revision 2 got %.1f %%, want 20 %% and 4 points more or less", cluster, report, got)
		}
	}

	deploy(s, map[int]int{2: 100})
	for cluster, stream := range whole {
		report := stream.Stop()
		t.Logf("%s: %s; %v", cluster, report, report.Versions)
		if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 || report.Versions["v2"] == 0 {
			t.Errorf("%s: %s: want no request lost, and answers of both revisions", cluster, report)
		}
	}
}
