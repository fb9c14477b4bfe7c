// Package traffic tests what becomes of requests: pods are real servers, and clients ask them by the stand-ins for kube-proxy and cluster DNS of
// hack/stock/datapath. "make bench ARGS=-traffic" measures more of the same.
package traffic

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
)

// shared is a logical cluster in front of two whose pods are servers. Tests use it one after another: they measure.
var shared = framework.NewShared(framework.Options{Clusters: []string{"east", "west"}, Cluster: stock.Options{Servers: true}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// above is the logical cluster as a member of the network: its clients take their endpoints from there.
const above = "logical"

// scenario is a namespace, and the network that leads to its pods.
type scenario struct {
	*framework.Scenario
	network *datapath.Network
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	s := framework.NewScenario(t, shared.Get(t))
	members := []datapath.Member{{Name: above, Client: s.Logical.Kube}}
	for _, c := range s.Environment.Clusters {
		members = append(members, datapath.Of(c))
	}
	network, err := datapath.Start(t.Context(), datapath.Options{Members: members})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Stop)
	return &scenario{s, network}
}

// client returns somebody in a pod of the scenario's namespace.
func (s *scenario) client(cluster string) *datapath.Client {
	s.Helper()
	client, err := s.network.Client(datapath.From{Cluster: cluster, Namespace: s.Namespace})
	if err != nil {
		s.Fatal(err)
	}
	return client
}

// ask returns who answers a client.
func (s *scenario) ask(client *datapath.Client, url string) (pods.Answer, error) {
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	return client.Ask(ctx, url)
}

// answered waits until a client is answered from the cluster, whatever the name it asks.
func (s *scenario) answered(client *datapath.Client, url, cluster string) pods.Answer {
	s.Helper()
	var answer pods.Answer
	s.Logical.Poll(url+" is answered from "+cluster, func() (err error) {
		if answer, err = s.ask(client, url); err == nil && answer.Cluster != cluster {
			err = fmt.Errorf("answered by %+v", answer)
		}
		return err
	})
	return answer
}

// rate is what a busy machine of two processors does beside all else.
const rate = 100

// stream has a client ask the Service "web" until the test stops it.
func (s *scenario) stream(client *datapath.Client) *load.Load {
	s.Helper()
	stream := load.Start(load.Options{
		URL: "http://web", Dial: client.DialContext, Rate: rate, Timeout: 10 * time.Second,
		Expect: func(a pods.Answer) error {
			if a.Namespace != s.Namespace || a.App != "web" {
				return fmt.Errorf("answered by app %q of namespace %q", a.App, a.Namespace)
			}
			return nil
		},
	})
	s.Cleanup(func() { stream.Stop() })
	return stream
}

// web is a Deployment that listens, in a cluster, with its Service.
func web(cluster string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {manifold.dev/clusters: %q}}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kwok.x-k8s.io/start: 500ms}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{name: web, image: "web:v1", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, cluster, replicas)
}
