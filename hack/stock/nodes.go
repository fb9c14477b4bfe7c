package stock

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"net"
	"path/filepath"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/hack/stock/kubelet"
)

//go:embed kwok.yaml
var kwokConfig []byte

// kwokConfigOf returns the configuration of kwok. Where pods are servers, these say when a pod is ready, and delete it in the end.
func kwokConfigOf(options Options) []byte {
	if !options.Servers {
		return kwokConfig
	}
	config, _, _ := bytes.Cut(kwokConfig, []byte("---\n# What is deleted goes at once."))
	return bytes.Replace(config, []byte("{{ $ready := true }}"), []byte("{{ $ready := false }}"), 1)
}

// startKubelet serves the kubelet endpoints of all nodes, and the network of the pods, in this process, until the context ends.
func (c *Cluster) startKubelet(ctx context.Context) error {
	certificate, err := tls.LoadX509KeyPair(c.layout.pki.cert("kubelet"), c.layout.pki.key("kubelet"))
	if err != nil {
		return fmt.Errorf("load the certificate of the kubelet endpoints: %w", err)
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", c.layout.ports.kubelet))
	if err != nil {
		return fmt.Errorf("listen for the kubelet endpoints: %w", err)
	}
	network, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", c.layout.ports.network))
	if err != nil {
		listener.Close()
		return fmt.Errorf("listen for connections to pods: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(c.layout.pki.ca.cert)
	c.kubelet = kubelet.New(kubelet.Config{
		Cluster:     c.options.Name,
		Dir:         filepath.Join(c.layout.dir, "pods"),
		Client:      c.client,
		Launcher:    c.launcher,
		Certificate: certificate,
		ClientCA:    clients,
		ClientName:  kubeletClient,
		Servers:     c.options.Servers,
	})
	c.services.Go(func() error { return c.kubelet.Run(ctx, listener) })
	c.services.Go(func() error { return c.kubelet.RunNetwork(ctx, network) })
	return nil
}

// maxNodes is how many ranges of pod addresses there are.
const maxNodes = 256

// AddNodes makes n more nodes and waits until they are ready.
func (c *Cluster) AddNodes(ctx context.Context, n int) error {
	c.mu.Lock()
	first := c.nodes
	c.nodes += n
	c.mu.Unlock()
	if first+n > maxNodes {
		return fmt.Errorf("add %d nodes to the %d of cluster %q: there may be %d at most", n, first, c.options.Name, maxNodes)
	}
	version, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask cluster %q for its version: %w", c.options.Name, err)
	}
	for i := first; i < first+n; i++ {
		node := c.node(i, version.GitVersion)
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %q: %w", node.Name, err)
		}
	}
	return c.waitNodes(ctx, first+n)
}

// zones is how many zones the nodes of a cluster are spread over.
const zones = 3

func (c *Cluster) node(i int, version string) *corev1.Node {
	name := fmt.Sprintf("%s-%d", c.options.Name, i)
	cidr := fmt.Sprintf("%s.%d.0/24", c.layout.podPrefix, i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", metricsPathAnnotation: kubelet.MetricsPath(name)},
			Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelOSStable:       "linux",
				corev1.LabelArchStable:     runtime.GOARCH,
				corev1.LabelTopologyRegion: c.options.Name,
				corev1.LabelTopologyZone:   fmt.Sprintf("%s-%c", c.options.Name, 'a'+i%zones),
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
		Status: corev1.NodeStatus{
			Capacity:    c.options.Node.DeepCopy(),
			Allocatable: c.options.Node.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{
				KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(c.layout.ports.kubelet)},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            runtime.GOARCH,
				OperatingSystem:         "linux",
				OSImage:                 "kwok",
				KernelVersion:           "kwok",
				ContainerRuntimeVersion: "kwok",
				KubeletVersion:          version,
			},
		},
	}
}
