// Package gateway sends requests from outside through a real gateway, Traefik as it is released, before each of two stock clusters whose pods
// are servers. It takes long to build, so only "make gateway" does all this.
package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/gateway"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// shared is a logical cluster in front of two whose pods are servers. Tests use it one after another: they measure.
var shared = framework.NewShared(framework.Options{Clusters: []string{"east", "west"}, Cluster: stock.Options{Servers: true}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// repository returns the root of the repository.
func repository(s *framework.Scenario) string {
	s.Helper()
	root, err := tools.Root()
	if err != nil {
		s.Fatal(err)
	}
	return root
}

// startGateway starts a gateway before a cluster, which ends with the test.
func startGateway(s *framework.Scenario, cluster string, gatewayAPI bool) *gateway.Gateway {
	s.Helper()
	bin, err := tools.BuildGateway(s.Context(), repository(s), os.Stdout)
	if err != nil {
		s.Fatal(err)
	}
	network, err := datapath.Start(s.Context(), datapath.Options{Members: []datapath.Member{datapath.Of(s.Environment.Clusters[cluster])}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(network.Stop)
	g, err := gateway.Start(s.Context(), gateway.Options{
		Binary: filepath.Join(bin, tools.Traefik), Dir: s.Environment.Dir, Cluster: s.Environment.Clusters[cluster], Network: network, GatewayAPI: gatewayAPI,
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := g.Stop(); err != nil {
			s.Error(err)
		}
	})
	return g
}

// defineRoutes has clusters and the logical one know the Gateway API. Each cluster has a Gateway of its own, which takes routes from everywhere.
func defineRoutes(s *framework.Scenario, clusters ...string) {
	s.Helper()
	definitions, err := gateway.Definitions(s.Context(), repository(s))
	if err != nil {
		s.Fatal(err)
	}
	sides := []*framework.Side{s.Logical}
	for _, cluster := range clusters {
		sides = append(sides, s.Side(cluster))
	}
	for _, side := range sides {
		side.KubectlInput(definitions, "apply", "--server-side", "-f", "-")
		side.Established(definitions)
	}
	for _, cluster := range clusters {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "httproutes.gateway.networking.k8s.io")
		s.Side(cluster).KubectlInput(fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: %s}
---
apiVersion: v1
kind: Namespace
metadata: {name: gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: gateways}
spec:
  gatewayClassName: traefik
  listeners: [{name: web, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`, gateway.Controller, gateway.Port), "apply", "--namespace=gateways", "-f", "-")
	}
}

// stream asks a host by way of a gateway until the test stops it.
func stream(s *framework.Scenario, g *gateway.Gateway, host string) *load.Load {
	s.Helper()
	out := load.Start(load.Options{URL: "http://" + g.Address, Host: host, Rate: 100, Timeout: 10 * time.Second, Expect: func(a pods.Answer) error {
		if a.Namespace != s.Namespace {
			return fmt.Errorf("answered from namespace %q", a.Namespace)
		}
		return nil
	}})
	s.Cleanup(func() { out.Stop() })
	return out
}

// answers waits until a host is answered by way of a gateway.
func answers(s *framework.Scenario, g *gateway.Gateway, host string) {
	s.Helper()
	probe := stream(s, g, host)
	s.Logical.Poll(host+" is answered at "+g.Address, func() error {
		if r := probe.Report(); r.Failed == r.Sent {
			return fmt.Errorf("%s\n%s", r, g.LogTail(10))
		}
		return nil
	})
	probe.Stop()
}

// awaitSent waits until a stream has counted so many requests.
func awaitSent(s *framework.Scenario, l *load.Load, n int) {
	s.Helper()
	s.Logical.Poll("enough requests are sent", func() error {
		if r := l.Report(); r.Sent < n {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// app is a Deployment that listens, in a cluster, with its Service.
func app(name, cluster, version string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {manifold.dev/clusters: %[2]q}}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{name: app, image: "app:%[3]s", ports: [{name: http, containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, name, cluster, version)
}
