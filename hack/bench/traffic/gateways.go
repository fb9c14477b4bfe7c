package traffic

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/manifold-dev/manifold/hack/stock/datapath/gateway"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// front is the Gateway of each cluster, which is the cluster's own and takes routes from everywhere.
var front = fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: %s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: gateways}
spec:
  gatewayClassName: traefik
  listeners: [{name: web, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`, gateway.Controller, gateway.Port)

// defineRoutes has all clusters know the Gateway API, if there are gateways, and returns what a cluster has to be joined with.
func (s *site) defineRoutes(ctx context.Context) (joinArgs []string, err error) {
	if s.options.Gateway == "" {
		return nil, nil
	}
	definitions, err := gateway.Definitions(ctx, s.options.Root)
	if err != nil {
		return nil, err
	}
	kubeconfigs := []string{s.server.Kubeconfig()}
	for _, c := range s.clusters {
		kubeconfigs = append(kubeconfigs, c.Kubeconfig())
	}
	for _, kubeconfig := range kubeconfigs {
		if err := s.kubectl(ctx, kubeconfig, definitions, "apply", "--server-side", "-f", "-"); err != nil {
			return nil, err
		}
		if err := s.kubectl(ctx, kubeconfig, definitions, "wait", "--for=condition=Established", "--timeout=1m", "-f", "-"); err != nil {
			return nil, err
		}
	}
	for _, c := range s.clusters {
		if err := s.kubectl(ctx, c.Kubeconfig(), front, "apply", "-f", "-"); err != nil {
			return nil, err
		}
	}
	return []string{"--allow-kind", "httproutes.gateway.networking.k8s.io"}, nil
}

// kubectl runs kubectl on one of the clusters, past Manifold.
func (s *site) kubectl(ctx context.Context, kubeconfig, stdin string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.options.BinDir, tools.Kubectl), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// startGateways starts a gateway before each cluster, if there is one to start.
func (s *site) startGateways(ctx context.Context) error {
	if s.options.Gateway == "" {
		return nil
	}
	for _, c := range s.clusters {
		g, err := gateway.Start(ctx, gateway.Options{Binary: s.options.Gateway, Dir: s.options.Dir, Cluster: c, Network: s.network, GatewayAPI: true})
		if err != nil {
			return err
		}
		s.gateways = append(s.gateways, g)
	}
	return nil
}

// atGateways are clients from outside that each come by the gateway of one cluster.
func atGateways(_ context.Context, r *run) (*clients, error) {
	c := newClients()
	for i, g := range r.gateways {
		r.add(c, "at "+r.clusters[i].Name(), load.Options{URL: "http://" + g.Address, Host: r.host()})
	}
	return c, nil
}

// host is what the namespace is called from outside.
func (r *run) host() string { return "web." + r.namespace + ".example.com" }
