// Package stock runs stock Kubernetes clusters on this machine, for tests, the demo and the benchmark.
//
// A cluster is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, as hack/tools pins them, each a process of its
// own on loopback that dies with the process that started it. Nodes are kwok's: everything above them is real, and pods are said to
// run without anything running. What users do to containers works all the same, see package kubelet; that part runs in the process
// that started the cluster. Everything a cluster writes, its logs included, is in one folder. A cluster's data does not survive it.
package stock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/kubelet"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// Options say what cluster to start. Name, Dir and BinDir are required.
type Options struct {
	// Name of the cluster. It goes into the names of nodes and into their region label.
	Name string
	// Dir is the cluster's folder. Data of an earlier cluster in it is removed.
	Dir string
	// BinDir holds the programs; tools.Build makes it.
	BinDir string
	// Nodes is how many nodes there are, 3 if it is 0. More come with AddNodes.
	Nodes int
	// Node is the capacity of each node: 32 CPUs, 256 GiB and 110 pods if it is nil.
	Node corev1.ResourceList
	// Metrics adds a metrics-server, which the cluster serves metrics.k8s.io from; see package kubelet for what pods use.
	Metrics bool
	// Servers makes every pod a real HTTP server, which decides when it is ready, and which goes on through its grace period when it is
	// deleted; see package pods. Without it pods are ready at once and gone at once.
	Servers bool
	// Progress is told in lines how far the start is. Nil means that nobody is.
	Progress io.Writer
	// AuditPolicy is an audit policy for the API server, whose log is then AuditLog. Without one there is none.
	AuditPolicy string
	// ExtraArgs are further arguments of components.
	ExtraArgs map[Component][]string
	// Env are variables, as "NAME=value", that all components get beside those of this process.
	Env []string
}

// Cluster is a running cluster.
type Cluster struct {
	options  Options
	layout   *layout
	launcher *process.Launcher
	config   *rest.Config
	client   *kubernetes.Clientset
	// probe asks the components how they are.
	probe   *http.Client
	kubelet *kubelet.Server
	// pods are the servers in the pods. They are nil without Options.Servers.
	pods *pods.Server
	// lock keeps other processes out of the cluster's folder, and addresses out of its pods' addresses.
	lock, addresses *os.File
	// services is what runs in this process; cancel ends it.
	services *errgroup.Group
	cancel   context.CancelFunc

	mu sync.Mutex
	// processes, stopped and nodes are guarded by mu.
	processes map[Component]*process.Process
	stopped   bool
	nodes     int
}

// Start starts a cluster and returns when it is ready for work: all components are healthy, the nodes are ready, and pods can be
// made in the namespace "default". The context bounds the start alone; Stop ends the cluster. An error names the component that did
// not come up and holds the end of its log; nothing is left running then.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := prepare(options)
	if err != nil {
		return nil, fmt.Errorf("prepare cluster %q: %w", options.Name, err)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %q: %w", options.Name, err), c.Stop())
	}
	return c, nil
}

func prepare(options Options) (*Cluster, error) {
	if options.Name == "" || options.Dir == "" || options.BinDir == "" {
		return nil, errors.New("Name, Dir and BinDir are required")
	}
	if options.Nodes == 0 {
		options.Nodes = 3
	}
	if options.Node == nil {
		options.Node = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("32"),
			corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	lock, err := LockDir(options.Dir)
	if err != nil {
		return nil, err
	}
	podPrefix, addresses, err := reservePods(options.Name)
	if err != nil {
		lock.Close()
		return nil, err
	}
	l, err := newLayout(options, podPrefix)
	if err != nil {
		addresses.Close()
		lock.Close()
		return nil, err
	}
	c := &Cluster{
		options:   options,
		lock:      lock,
		addresses: addresses,
		layout:    l,
		launcher:  process.NewLauncher(),
		processes: map[Component]*process.Process{},
	}
	if err := c.makeClients(); err != nil {
		c.launcher.Close()
		addresses.Close()
		lock.Close()
		return nil, err
	}
	if options.Servers {
		c.pods = pods.New(options.Name, c.client)
	}
	return c, nil
}

// newLayout makes the cluster's folder, and in it everything that the components read.
func newLayout(options Options, podPrefix string) (*layout, error) {
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the cluster's folder: %w", err)
	}
	for _, old := range []string{"etcd", "pods", "logs"} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return nil, fmt.Errorf("remove what an earlier cluster left: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	free, err := freePorts(7)
	if err != nil {
		return nil, err
	}
	l := &layout{
		name:      options.Name,
		dir:       dir,
		podPrefix: podPrefix,
		ports: ports{
			apiServer: free[0], controllerManager: free[1], scheduler: free[2], kwok: free[3], kubelet: free[4], metricsServer: free[5],
			network: free[6],
		},
	}
	if l.pki, err = makePKI(filepath.Join(dir, "pki")); err != nil {
		return nil, err
	}
	for _, user := range []string{"admin", "controller-manager", "scheduler", "kwok", "metrics-server"} {
		if err := writeKubeconfig(l.kubeconfig(user), l.name, l.server(), l.pki, user); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(l.file("kwok.yaml"), kwokConfigOf(options), 0o644); err != nil {
		return nil, fmt.Errorf("write the configuration of kwok: %w", err)
	}
	if options.AuditPolicy != "" {
		l.audited = true
		if err := os.WriteFile(l.file("audit-policy.yaml"), []byte(options.AuditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("write the audit policy: %w", err)
		}
	}
	if err := os.WriteFile(l.file("network.yaml"), l.networkConfig(), 0o644); err != nil {
		return nil, fmt.Errorf("write the API server's way to the network: %w", err)
	}
	return l, nil
}

func (c *Cluster) makeClients() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read %s: %w", c.Kubeconfig(), err)
	}
	config.QPS = -1 // the servers bound the load, not the clients
	config.UserAgent = "stock"
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("make the client of cluster %q: %w", c.options.Name, err)
	}
	c.config, c.probe = config, &http.Client{Transport: transport, Timeout: 5 * time.Second}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make the client of cluster %q: %w", c.options.Name, err)
	}
	return nil
}

// start starts the control plane's storage and API first, then everything that talks to it at once.
func (c *Cluster) start(ctx context.Context) error {
	begin := time.Now()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // Stop ends it
	c.cancel, c.services = cancel, &errgroup.Group{}
	if err := c.startKubelet(running); err != nil {
		return err
	}
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.run(component); err != nil {
			return err
		}
	}
	if err := c.waitHealthy(ctx, APIServer); err != nil {
		return err
	}
	c.progress("API server is up", begin)
	if c.pods != nil {
		c.services.Go(func() error { return c.pods.Run(running) })
	}

	group, ctx := errgroup.WithContext(ctx)
	for _, component := range []Component{ControllerManager, Scheduler, Kwok} {
		if err := c.run(component); err != nil {
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error { return c.waitHealthy(ctx, component) })
	}
	group.Go(func() error { return c.AddNodes(ctx, c.options.Nodes) })
	group.Go(func() error { return c.waitNamespace(ctx) })
	if c.options.Metrics {
		group.Go(func() error { return c.startMetrics(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.progress(fmt.Sprintf("ready with %d nodes", c.options.Nodes), begin)
	return nil
}

func (c *Cluster) progress(what string, since time.Time) {
	fmt.Fprintf(c.options.Progress, "cluster %s: %s after %.1fs\n", c.options.Name, what, time.Since(since).Seconds())
}

// Name returns the cluster's name.
func (c *Cluster) Name() string {
	return c.options.Name
}

// Dir returns the cluster's folder. The log of a component is in it as logs/<component>.log.
func (c *Cluster) Dir() string {
	return c.layout.dir
}

// AuditLog returns the path of the API server's audit log, which there is with Options.AuditPolicy.
func (c *Cluster) AuditLog() string {
	return c.layout.file("audit.log")
}

// Kubeconfig returns the path of a self-contained kubeconfig of a cluster administrator.
func (c *Cluster) Kubeconfig() string {
	return c.layout.kubeconfig("admin")
}

// RESTConfig returns a new configuration of an administrator's client, without client-side throttling.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Client returns an administrator's client, without client-side throttling.
func (c *Cluster) Client() kubernetes.Interface {
	return c.client
}

// PodCIDR returns the range that the addresses of the cluster's pods are from. No two clusters of this machine share one.
func (c *Cluster) PodCIDR() netip.Prefix {
	return netip.MustParsePrefix(c.layout.podPrefix + ".0.0/16")
}

// Log adds a line to the log of a container, as if the container had printed it. An empty container name means the pod's first.
func (c *Cluster) Log(ctx context.Context, namespace, pod, container, line string) error {
	return c.kubelet.Log(ctx, namespace, pod, container, line)
}

// Stop ends all processes of the cluster and waits until they are gone. Its folder stays. Stopping twice is no error.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	c.mu.Unlock()

	var errs []error
	if c.cancel != nil {
		c.cancel()
		errs = append(errs, c.services.Wait())
	}
	// The data goes with the cluster, so nobody is asked to put things in order.
	for _, p := range c.processes {
		errs = append(errs, p.Kill())
	}
	c.launcher.Close()
	errs = append(errs, c.addresses.Close(), c.lock.Close())
	return errors.Join(errs...)
}
