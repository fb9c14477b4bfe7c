// Package datapath carries bytes between the pods of stock clusters, so that tests measure what happens to requests.
//
// Pods that listen come with stock.Options.Servers, see package pods. This package is the network that leads to them. For each cluster it
// has a stand-in for kube-proxy and cluster DNS, which watches Services and EndpointSlices as the real ones do and acts as late, see package
// services. A Client is somebody in a cluster and a namespace, or on the way there from outside: connections that it dials go where those of a
// pod would go, and StartProxy lets an unmodified program be such a client by the variable HTTP_PROXY.
//
//	network, err := datapath.Start(ctx, datapath.Options{Members: []datapath.Member{datapath.Of(east), datapath.Of(west)}})
//	client := network.Client(datapath.From{Cluster: "east", Namespace: "shop"})
//	http := &http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
//	response, err := http.Get("http://web/")
//
// Package load sends requests at a steady rate and counts what becomes of them; package gateway runs a real gateway before a cluster.
//
// What differs from a real network: an address that no pod has refuses connections, where a real one would often be silent. Only loopback
// addresses are ever dialled, whatever a Service or a client says.
package datapath

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/datapath/services"
)

// Member is an API whose Services the network knows: a stock cluster's, or the logical cluster's, for clients that take their endpoints there.
type Member struct {
	Name   string
	Client kubernetes.Interface
	// Pods is the range of the addresses of its pods. A member without pods of its own has none.
	Pods netip.Prefix
}

// Of returns a stock cluster as a member.
func Of(c *stock.Cluster) Member {
	return Member{Name: c.Name(), Client: c.Client(), Pods: c.PodCIDR()}
}

// Options say what network to start.
type Options struct {
	Members []Member
	// Apart keeps the pods of one cluster out of reach of the others. Without it all clusters are one flat network.
	Apart bool
}

// Network is the network of some clusters.
type Network struct {
	apart   bool
	members map[string]*member
	cancel  context.CancelFunc
	running *errgroup.Group
}

// member is a Member with what is known of it.
type member struct {
	Member
	state atomic.Pointer[services.State]
	// changed holds one when something is new.
	changed chan struct{}
}

// Start starts a network, and returns when everything that there is now is known. The context bounds the start alone; Stop ends the network.
func Start(ctx context.Context, options Options) (*Network, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &Network{apart: options.Apart, members: map[string]*member{}, cancel: cancel, running: &errgroup.Group{}}
	for _, m := range options.Members {
		added := &member{Member: m, changed: make(chan struct{}, 1)}
		n.members[m.Name] = added
		if err := added.start(ctx, running, n.running); err != nil {
			n.Stop()
			return nil, fmt.Errorf("learn the Services of cluster %q: %w", m.Name, err)
		}
	}
	return n, nil
}

// Stop ends the network. Connections that there are go on.
func (n *Network) Stop() {
	n.cancel()
	_ = n.running.Wait() // nothing of it fails
}

// start watches until the second context ends.
func (m *member) start(ctx, running context.Context, group *errgroup.Group) error {
	signal := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { m.signal() }, UpdateFunc: func(any, any) { m.signal() }, DeleteFunc: func(any) { m.signal() },
	}
	watch := func(client cache.Getter, resource string, kind cache.InformerOptions) (cache.Store, cache.Controller) {
		kind.ListerWatcher = cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
		kind.Handler = signal
		store, informer := cache.NewInformerWithOptions(kind)
		group.Go(func() error {
			informer.RunWithContext(running)
			return nil
		})
		return store, informer
	}
	known, informer := watch(m.Client.CoreV1().RESTClient(), "services", cache.InformerOptions{ObjectType: &corev1.Service{}})
	slices, sliceInformer := watch(m.Client.DiscoveryV1().RESTClient(), "endpointslices", cache.InformerOptions{ObjectType: &discoveryv1.EndpointSlice{}})
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, sliceInformer.HasSynced) {
		return ctx.Err()
	}
	m.learn(known, slices)
	group.Go(func() error {
		m.follow(running, known, slices)
		return nil
	})
	return nil
}

func (m *member) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *member) learn(known, slices cache.Store) {
	m.state.Store(services.NewState(all[*corev1.Service](known), all[*discoveryv1.EndpointSlice](slices)))
}

func all[T any](store cache.Store) []T {
	var out []T
	for _, object := range store.List() {
		out = append(out, object.(T))
	}
	return out
}

// syncPeriod is how long kube-proxy waits, as it comes, between two times that it writes its rules.
const syncPeriod = time.Second

// follow takes over what is new: at once after a time of rest, and then once in each period.
func (m *member) follow(ctx context.Context, known, slices cache.Store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		}
		m.learn(known, slices)
		select {
		case <-ctx.Done():
			return
		case <-time.After(syncPeriod):
		}
	}
}

// dialPod connects to an address of a pod, from a cluster.
func (n *Network) dialPod(ctx context.Context, from string, to netip.AddrPort) (net.Conn, error) {
	if !pods.IsPod(to.Addr()) {
		return nil, refusal(to, syscall.EHOSTUNREACH)
	}
	if n.apart && !n.members[from].Pods.Contains(to.Addr()) {
		return nil, refusal(to, syscall.EHOSTUNREACH)
	}
	at, err := pods.Listener(to.Addr(), to.Port())
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp4", at.String())
}

// refusal is the error of a connection that is not to be had.
func refusal(to netip.AddrPort, why syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: why}
}
