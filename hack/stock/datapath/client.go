package datapath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/datapath/services"
)

// From is where a client is.
type From struct {
	// Cluster is the name of the member whose Services and names the client has, and Namespace the one that short names are looked up in.
	Cluster, Namespace string
	// Node and Zone matter for traffic policies and topology hints. A client without them is on no node.
	Node, Zone string
}

// Client is somebody who connects to pods and Services. To them it is one address.
type Client struct {
	network *Network
	member  *member
	from    From

	mu sync.Mutex
	// kept is the endpoint that a Service with session affinity gave this client, guarded by mu.
	kept map[portKey]keptEndpoint
}

type portKey struct {
	service types.NamespacedName
	port    string
}

type keptEndpoint struct {
	address netip.AddrPort
	last    time.Time
}

// Client returns a client at a place in the network.
func (n *Network) Client(from From) (*Client, error) {
	m, ok := n.members[from.Cluster]
	if !ok {
		return nil, fmt.Errorf("make a client in cluster %q: the network has no such member", from.Cluster)
	}
	return &Client{network: n, member: m, from: from, kept: map[portKey]keptEndpoint{}}, nil
}

// HTTP returns an HTTP client that dials this way and keeps its connections, or opens one for each request.
func (c *Client) HTTP(keepAlive bool) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.DialContext, DisableKeepAlives: !keepAlive}}
}

// Ask returns who answers a request to a URL, over a connection of its own.
func (c *Client) Ask(ctx context.Context, url string) (answer pods.Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := c.HTTP(false).Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

// DialContext connects as a pod would connect: the host is a name of cluster DNS, or an address of a Service, a node or a pod. A Service
// without endpoints refuses the connection; one that has none on the node that its policy asks for is silent until the context ends.
func (c *Client) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("dial %q: port: %w", address, err)
	}
	addresses, err := c.lookup(host)
	if err != nil {
		return nil, fmt.Errorf("dial %q in cluster %q: %w", address, c.from.Cluster, err)
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	var errs []error
	for _, ip := range addresses {
		conn, err := c.dial(ctx, netip.AddrPortFrom(ip, uint16(port)))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("dial %q in cluster %q: %w", address, c.from.Cluster, errors.Join(errs...))
}

func (c *Client) lookup(host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	return c.member.state.Load().Lookup(host, c.from.Namespace)
}

func (c *Client) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	port, ok := c.member.state.Load().Port(to)
	if !ok && to.Addr().IsLoopback() {
		return (&net.Dialer{}).DialContext(ctx, "tcp4", to.String())
	}
	if ok {
		var err error
		if to, err = c.choose(ctx, to, port); err != nil {
			return nil, err
		}
	}
	return c.network.dialPod(ctx, c.from.Cluster, to)
}

// choose returns the endpoint that a new connection to a port of a Service gets.
func (c *Client) choose(ctx context.Context, to netip.AddrPort, port services.Port) (netip.AddrPort, error) {
	place := services.Place{Node: c.from.Node, Zone: c.from.Zone}
	usable := services.Usable(port.Endpoints, port.Local, place)
	if len(usable) == 0 {
		if port.Local && len(services.Usable(port.Endpoints, false, place)) > 0 {
			<-ctx.Done() // kube-proxy drops what may not leave the node
			return netip.AddrPort{}, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: ctx.Err()}
		}
		return netip.AddrPort{}, refusal(to, syscall.ECONNREFUSED)
	}
	if port.Sticky == 0 {
		return usable[rand.IntN(len(usable))].Address, nil
	}
	return c.keep(port, usable), nil
}

// keep returns the endpoint that the client has had of late, if it still may, or a new one.
func (c *Client) keep(port services.Port, usable []services.Endpoint) netip.AddrPort {
	key := portKey{port.Service, port.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	address := usable[rand.IntN(len(usable))].Address
	if kept, ok := c.kept[key]; ok && time.Since(kept.last) < time.Duration(port.Sticky)*time.Second {
		for _, e := range usable {
			if e.Address == kept.address {
				address = kept.address
			}
		}
	}
	c.kept[key] = keptEndpoint{address, time.Now()}
	return address
}
