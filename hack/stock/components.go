package stock

import (
	"fmt"
	"path/filepath"

	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// Component is a process of a cluster.
type Component string

// The components of a cluster.
const (
	Etcd              Component = tools.Etcd
	APIServer         Component = tools.KubeAPIServer
	ControllerManager Component = tools.KubeControllerManager
	Scheduler         Component = tools.KubeScheduler
	Kwok              Component = tools.Kwok
	// MetricsServer is part of a cluster that has Options.Metrics.
	MetricsServer Component = tools.MetricsServer
)

// Components returns the components of the cluster, in the order in which they start.
func (c *Cluster) Components() []Component {
	all := []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
	if c.options.Metrics {
		all = append(all, MetricsServer)
	}
	return all
}

const (
	serviceCIDR = "10.96.0.0/16"
	// serviceIP is the address of the Service "kubernetes", the first of serviceCIDR.
	serviceIP = "10.96.0.1"
	issuer    = "https://kubernetes.default.svc.cluster.local"
)

// ports of a cluster. Etcd listens on sockets in the cluster's folder.
type ports struct {
	apiServer, controllerManager, scheduler, kwok, kubelet, metricsServer, network int
}

// layout is where everything of a cluster is and what its components are told.
type layout struct {
	name string
	dir  string
	// podPrefix is the first half of the addresses of pods.
	podPrefix string
	ports     ports
	pki       *pki
	// audited reports whether the API server writes an audit log.
	audited bool
}

func (l *layout) file(name string) string {
	return filepath.Join(l.dir, name)
}

func (l *layout) kubeconfig(user string) string {
	return l.file(user + ".kubeconfig")
}

func (l *layout) server() string {
	return fmt.Sprintf("https://127.0.0.1:%d", l.ports.apiServer)
}

// args returns the arguments of a component. Those of the control plane are what kubeadm gives, but for five things: it listens on
// loopback alone; there is one of each, so leaders need no electing; the endpoints of the Service "kubernetes" stay empty, since
// they may not be loopback addresses; pods are reached through a network of their own, since their addresses are made up; and the
// controllers' client is not throttled, so that tests wait for work and not for tokens.
func (l *layout) args(c Component) []string {
	switch c {
	case Etcd:
		return l.etcdArgs()
	case APIServer:
		return l.apiServerArgs()
	case ControllerManager:
		return l.controllerManagerArgs()
	case Scheduler:
		return l.schedulerArgs()
	case Kwok:
		return l.kwokArgs()
	case MetricsServer:
		return l.metricsServerArgs()
	}
	return nil
}

// Sockets are named relative to the folder, which the components run in: a socket's path may not be longer than some 100 bytes.
const (
	etcdClientSocket = "unix://etcd.sock"
	etcdPeerSocket   = "unix://etcd-peer.sock"
)

func (l *layout) etcdArgs() []string {
	return []string{
		"--name=" + l.name,
		"--data-dir=" + l.file("etcd"),
		"--listen-client-urls=" + etcdClientSocket,
		"--advertise-client-urls=" + etcdClientSocket,
		"--listen-peer-urls=" + etcdPeerSocket,
		"--initial-advertise-peer-urls=" + etcdPeerSocket,
		"--initial-cluster=" + l.name + "=" + etcdPeerSocket,
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (l *layout) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + etcdClientSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", l.ports.apiServer),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--client-ca-file=" + l.pki.cert("ca"),
		"--tls-cert-file=" + l.pki.cert("apiserver"),
		"--tls-private-key-file=" + l.pki.key("apiserver"),
		"--kubelet-certificate-authority=" + l.pki.cert("ca"),
		"--kubelet-client-certificate=" + l.pki.cert("apiserver-kubelet-client"),
		"--kubelet-client-key=" + l.pki.key("apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file=" + l.file("network.yaml"),
		"--proxy-client-cert-file=" + l.pki.cert("front-proxy-client"),
		"--proxy-client-key-file=" + l.pki.key("front-proxy-client"),
		"--requestheader-client-ca-file=" + l.pki.cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + l.pki.key("sa"),
		"--service-account-signing-key-file=" + l.pki.key("sa"),
	}
	if l.audited {
		args = append(args, "--audit-policy-file="+l.file("audit-policy.yaml"), "--audit-log-path="+l.file("audit.log"), "--audit-log-mode=blocking")
	}
	return args
}

// networkConfig sends the API server's connections to nodes, pods and webhooks through kubelet.Server's network.
func (l *layout) networkConfig() []byte {
	return fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://127.0.0.1:%d
        tlsConfig:
          caBundle: %s
          clientCert: %s
          clientKey: %s
`, l.ports.network, l.pki.cert("ca"), l.pki.cert("apiserver-kubelet-client"), l.pki.key("apiserver-kubelet-client"))
}

// servingArgs are those of a client of the API server that serves by itself: who it is, and whom it asks who its own callers are.
func (l *layout) servingArgs(name string, port int, args ...string) []string {
	kubeconfig := l.kubeconfig(name)
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + l.pki.cert(name),
		"--tls-private-key-file=" + l.pki.key(name),
	}, args...)
}

func (l *layout) controllerManagerArgs() []string {
	return l.servingArgs("controller-manager", l.ports.controllerManager,
		"--client-ca-file="+l.pki.cert("ca"),
		"--requestheader-client-ca-file="+l.pki.cert("front-proxy-ca"),
		"--root-ca-file="+l.pki.cert("ca"),
		"--cluster-signing-cert-file="+l.pki.cert("ca"),
		"--cluster-signing-key-file="+l.pki.key("ca"),
		"--service-account-private-key-file="+l.pki.key("sa"),
		"--use-service-account-credentials=true",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--cluster-name="+l.name,
		"--allocate-node-cidrs=true",
		"--cluster-cidr="+l.podPrefix+".0.0/16",
		"--service-cluster-ip-range="+serviceCIDR,
		"--leader-elect=false",
		// A cluster that was halted has old leases of its nodes when it goes on. Pods that are called unready for that stay so: kwok does not say
		// again that they are ready, as a kubelet would.
		"--node-monitor-grace-period=1h",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	)
}

func (l *layout) schedulerArgs() []string {
	return l.servingArgs("scheduler", l.ports.scheduler,
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	)
}

func (l *layout) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig("kwok"),
		"--config=" + l.file("kwok.yaml"),
		fmt.Sprintf("--server-address=127.0.0.1:%d", l.ports.kwok),
	}
}

// healthURL is where a component says that it works, or nothing if it has no such place.
func (l *layout) healthURL(c Component) string {
	switch c {
	case APIServer:
		return l.server() + "/readyz"
	case ControllerManager:
		return fmt.Sprintf("https://127.0.0.1:%d/healthz", l.ports.controllerManager)
	case Scheduler:
		return fmt.Sprintf("https://127.0.0.1:%d/healthz", l.ports.scheduler)
	case Kwok:
		return fmt.Sprintf("http://127.0.0.1:%d/healthz", l.ports.kwok)
	case MetricsServer:
		// Not /readyz, which waits for the first usage.
		return fmt.Sprintf("https://127.0.0.1:%d/livez", l.ports.metricsServer)
	}
	return ""
}
