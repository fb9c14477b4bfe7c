// Package gateway runs a real gateway before a stock cluster: Traefik as it is released, a process of its own, which serves the cluster's
// Ingresses and, where their definitions are installed, its Gateways and HTTPRoutes. It reaches pods through a proxy into the data path, by
// the variable HTTP_PROXY, and knows of no other way.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/process"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

const (
	// Port is where every gateway listens, each at an address of its own. The listeners of a Gateway must name it.
	Port = 8000
	// healthPort is where it says that it is well.
	healthPort = 8001
	// KeepsConnections is how long it keeps a connection, so that clients come to ask again where it is to go. By itself Traefik keeps one for ever, and a
	// client that has one never hears that the address has left.
	KeepsConnections = 5 * time.Second
	// Controller is the controllerName of a GatewayClass that the gateway serves.
	Controller = "traefik.io/gateway-controller"
)

// Options say what gateway to start. All are required but for GatewayAPI.
type Options struct {
	// Binary is the path of the program, which tools.BuildGateway makes.
	Binary string
	// Dir is where it writes its log.
	Dir string
	// Cluster is whose Ingresses it serves, and Network leads to its pods.
	Cluster *stock.Cluster
	Network *datapath.Network
	// GatewayAPI has it serve Gateways and HTTPRoutes too. Their definitions must be installed.
	GatewayAPI bool
}

// Gateway is a running gateway.
type Gateway struct {
	// Address is where it listens for requests from outside: HOST:PORT.
	Address string
	// LogFile holds what it printed.
	LogFile string

	proxy    *datapath.Proxy
	launcher *process.Launcher
	process  *process.Process
}

// Start starts a gateway and returns when it is ready for requests. The context bounds the start alone; Stop ends it.
func Start(ctx context.Context, options Options) (*Gateway, error) {
	client, err := options.Network.Client(datapath.From{Cluster: options.Cluster.Name(), Namespace: "default"})
	if err != nil {
		return nil, err
	}
	proxy, err := client.StartProxy()
	if err != nil {
		return nil, err
	}
	ip := addressBefore(options.Cluster)
	g := &Gateway{
		Address: net.JoinHostPort(ip, strconv.Itoa(Port)), LogFile: filepath.Join(options.Dir, "gateway-"+options.Cluster.Name()+".log"),
		proxy: proxy, launcher: process.NewLauncher(),
	}
	health := net.JoinHostPort(ip, strconv.Itoa(healthPort))
	cmd := exec.Command(options.Binary, args(g.Address, health, ip, options.GatewayAPI)...)
	cmd.Dir = options.Dir
	// Traefik's own connections to pods honour HTTP_PROXY; the API server has a loopback address, which goes through no proxy.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+options.Cluster.Kubeconfig(), "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL,
		"NO_PROXY=", "no_proxy=")
	if g.process, err = g.launcher.Run(cmd, g.LogFile); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	if err := g.untilReady(ctx, "http://"+health+"/ping"); err != nil {
		return nil, errors.Join(fmt.Errorf("start the gateway before cluster %q: %w; the end of %s:\n%s", options.Cluster.Name(), err, g.LogFile,
			g.LogTail(20)), g.Stop())
	}
	return g, nil
}

// addressBefore returns a loopback address that belongs to a cluster and that no pod of it listens at: nodes have ranges from 0 on.
func addressBefore(c *stock.Cluster) string {
	octets := c.PodCIDR().Addr().As4()
	return fmt.Sprintf("127.%d.255.254", octets[1])
}

// args are the arguments of Traefik.
func args(address, health, ip string, gatewayAPI bool) []string {
	out := []string{
		"--global.checknewversion=false",
		"--global.sendanonymoususage=false",
		"--log.level=INFO",
		"--entrypoints.web.address=" + address,
		"--entrypoints.web.transport.keepalivemaxtime=" + KeepsConnections.String(),
		"--entrypoints.web.transport.respondingtimeouts.idletimeout=" + KeepsConnections.String(),
		"--entrypoints.health.address=" + health,
		"--ping.entrypoint=health",
		"--providers.kubernetesingress=true",
		"--providers.kubernetesingress.ingressendpoint.ip=" + ip,
	}
	if gatewayAPI {
		out = append(out, "--providers.kubernetesgateway=true", "--providers.kubernetesgateway.statusaddress.ip="+ip)
	}
	return out
}

// stopGrace is how long the gateway may take to end when it is asked to.
const stopGrace = 15 * time.Second

// Stop ends the gateway.
func (g *Gateway) Stop() error {
	defer g.launcher.Close()
	var errs []error
	if g.process != nil {
		errs = append(errs, g.process.Terminate(stopGrace))
	}
	return errors.Join(append(errs, g.proxy.Stop())...)
}

// LogTail returns the last lines that the gateway printed.
func (g *Gateway) LogTail(lines int) string { return process.LogTail(g.LogFile, lines) }

func (g *Gateway) untilReady(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		response, err := client.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last seen: %w", ctx.Err(), err)
		case <-g.process.Exited():
			return fmt.Errorf("it ended: %w", g.process.Err())
		case <-tick.C:
		}
	}
}

// Definitions returns the manifest of the Gateway API's CustomResourceDefinitions, those of the standard channel, as the gateway knows them.
func Definitions(ctx context.Context, root string) (string, error) {
	dir, err := tools.SourceOfModule(ctx, root, tools.Traefik, "sigs.k8s.io/gateway-api")
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "config", "crd", "standard", "gateway*.yaml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("find the definitions of the Gateway API in %s: %w", dir, errors.Join(err, errors.New("there are none")))
	}
	var all []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the definitions of the Gateway API: %w", err)
		}
		all = append(all, string(content))
	}
	return strings.Join(all, "\n---\n"), nil
}
