package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/ours"
)

const (
	// portForward is the protocol spoken over the streams.
	portForward = "portforward.k8s.io"
	// dialTimeout bounds how long it may take to get a connection to a pod.
	dialTimeout = 10 * time.Second
	// perCluster bounds the connections to the pods of one cluster at a time. Each is a connection to the cluster's API server.
	perCluster = 1000
	// maxRefusal is how much is read of what a cluster has to say when it refuses.
	maxRefusal = 4 << 10
	// maxShown is how much of that an error shows.
	maxShown = 500
)

// DialFunc connects to an address.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer connects to what Resolver answers. It is safe for concurrent use.
type Dialer struct {
	Pods     corelisters.PodLister
	Clusters Clusters
	// Identity is what marks objects below as those of this logical cluster.
	Identity ours.Identity
	// Stock dials all other addresses.
	Stock DialFunc

	mu    sync.Mutex
	slots map[string]chan struct{}
}

// Dial is a DialFunc.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := parse(address)
	if !ok {
		return d.Stock(ctx, network, address)
	}
	pod, err := d.Pods.Pods(to.namespace).Get(to.name)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != to.uid {
		return nil, fmt.Errorf("pod %s/%s, which served the Service, has gone", to.namespace, to.name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up pod %s/%s: %w", to.namespace, to.name, err)
	}
	cluster := projection.ClusterOf(pod)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.forward(ctx, cluster, pod, to)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", to.describe(cluster), err)
	}
	return conn, nil
}

// forward connects to a port of a pod by way of its cluster.
func (d *Dialer) forward(ctx context.Context, name string, pod *corev1.Pod, to podPort) (net.Conn, error) {
	cluster, err := d.Clusters.Cluster(name)
	if err != nil {
		return nil, err
	}
	if err := d.Identity.Pod(ctx, cluster.Client, name, pod); err != nil {
		return nil, err
	}
	release, err := d.slot(ctx, name)
	if err != nil {
		return nil, err
	}
	below, err := upgrade(ctx, cluster, to)
	if err != nil {
		release()
		return nil, err
	}
	conn, err := openStreams(ctx, below, to, name, release)
	if err != nil {
		release()
		return nil, err
	}
	return conn, nil
}

// slot waits for one of the connections that a cluster may have, until release gives it back.
func (d *Dialer) slot(ctx context.Context, cluster string) (release func(), err error) {
	d.mu.Lock()
	if d.slots == nil {
		d.slots = map[string]chan struct{}{}
	}
	slots, ok := d.slots[cluster]
	if !ok {
		slots = make(chan struct{}, perCluster)
		d.slots[cluster] = slots
	}
	d.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return sync.OnceFunc(func() { <-slots }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("all %d connections to pods of the cluster are in use: %w", perCluster, ctx.Err())
	}
}

// upgrade asks the cluster's API server to forward, and returns the connection to it that is left to us.
func upgrade(ctx context.Context, cluster Cluster, to podPort) (net.Conn, error) {
	var raw net.Conn
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { raw = got.Conn }})
	request, err := http.NewRequestWithContext(traced, http.MethodPost, forwardURL(cluster.Host, to).String(), nil)
	if err != nil {
		return nil, err
	}
	if request, err = cluster.Transport.WrapRequest(request); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	request.Header.Set(httpstream.HeaderProtocolVersion, portForward)
	response, err := cluster.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	// Once it has switched protocols, the body is the connection, after what has been read of it ahead.
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok || raw == nil {
		response.Body.Close()
		return nil, errors.New("the connection cannot be taken over from HTTP")
	}
	return &upgraded{Conn: raw, body: body}, nil
}

func forwardURL(host *url.URL, to podPort) *url.URL {
	out := *host
	out.Path = strings.TrimSuffix(out.Path, "/") + fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/portforward", to.namespace, to.name)
	return &out
}

// refusal is what a cluster answered instead.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	status := text.Line(response.Status, maxShown)
	if said := text.Line(string(body), maxShown); err == nil && said != "" {
		return fmt.Errorf("the cluster answers %s: %s", status, said)
	}
	return fmt.Errorf("the cluster answers %s", status)
}

// upgraded is a connection that was taken over from HTTP.
type upgraded struct {
	net.Conn
	body io.ReadWriteCloser
}

func (u *upgraded) Read(p []byte) (int, error)  { return u.body.Read(p) }
func (u *upgraded) Write(p []byte) (int, error) { return u.body.Write(p) }
func (u *upgraded) Close() error                { return u.body.Close() }

// openStreams opens the two streams of a forwarded port: one for errors, one for data. It closes below if that does not work.
func openStreams(ctx context.Context, below net.Conn, to podPort, cluster string, release func()) (*conn, error) {
	// Opening a stream waits for the other side without regard to ctx.
	stop := context.AfterFunc(ctx, func() { below.Close() })
	defer stop()
	streams, err := spdy.NewClientConnection(below)
	if err != nil {
		return nil, err // which has closed below
	}
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(int(to.port)))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	open := func(kind string) (httpstream.Stream, error) {
		header.Set(corev1.StreamType, kind)
		return streams.CreateStream(header)
	}
	failures, err := open(corev1.StreamTypeError)
	var data httpstream.Stream
	if err == nil {
		_ = failures.Close() // for writing: nothing is ever sent there
		data, err = open(corev1.StreamTypeData)
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("open a stream: %w", err)
		if failures != nil && ctx.Err() == nil {
			// A port that refuses at once ends the other stream while it is being opened.
			_ = below.SetReadDeadline(time.Now().Add(failureWait))
			if why := refusalOf(failures); why != "" {
				err = errors.New(why)
			}
		}
		below.Close()
		streams.Close()
		return nil, err
	}
	return newConn(below, streams, failures, data, to, cluster, release), nil
}
