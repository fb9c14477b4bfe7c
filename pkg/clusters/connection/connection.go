// Package connection makes and keeps the connection to one physical cluster: its credential, its clients and transports, the bounds and the patience
// by which they read, and on whose behalf requests are told to be made. Whose cluster it is, and whether it is well, is not its business.
package connection

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/manifold-dev/manifold/internal/redirects"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
)

const (
	// dialTimeout bounds how long a cluster may take to accept a connection.
	dialTimeout = 10 * time.Second
	// keepAlive is how often an idle TCP connection is tried. A stream of exec or port-forward carries nothing for hours and has no
	// other means to notice that its peer is gone; HTTP/2 connections are pinged besides, as in every Kubernetes client.
	keepAlive = 15 * time.Second
)

// Connection is a live connection to the cluster that joined under Name. It does not change, but for the token that its requests carry:
// when anything else of the credential does, or another cluster answers at the address, the connection ends and a new one is made. All requests share a few TCP connections and have no
// client-side rate limit, since the cluster has its own priority and fairness. It is safe for concurrent use.
type Connection struct {
	// Name is that of the Cluster object.
	Name string
	// UID is that of the cluster's kube-system namespace, which has been read through this connection.
	UID types.UID
	// Config is for making further clients. Do not change it; copy it first.
	Config *rest.Config
	// Client is for the built-in kinds, and its Discovery for what the cluster serves.
	Client kubernetes.Interface
	// Dynamic is for all other kinds.
	Dynamic dynamic.Interface
	// Metadata is for what is known of objects of any kind.
	Metadata metadata.Interface
	// Host is the address of the API server, with the path that it may be served under.
	Host *url.URL
	// Transport authenticates the requests that are proxied to the cluster. What is answered with a redirect comes back as it is, and is not
	// to be followed.
	Transport http.RoundTripper
	// UpgradeTransport does the same for requests that are upgraded to a stream (exec, attach, port-forward): it avoids HTTP/2,
	// which has no upgrades. It belongs into the field of that name of proxy.UpgradeAwareHandler.
	UpgradeTransport proxy.UpgradeRequestRoundTripper
	// Usage sums up what the cluster's pods request. The Runner feeds it from its pod watch.
	Usage *capacity.Usage
	// Classes are those that the cluster has. The Runner feeds it from its watches.
	Classes *Classes
	// Answers reports whether the cluster answers.
	Answers *Answers
	// Budget counts what is kept of the cluster in memory. Informers of its objects belong behind its gates.
	Budget *bounds.Budget

	// Token is what requests carry; it may be renewed while the connection lasts.
	Token *bearer.Source

	// behalf tells the cluster whose requests are.
	behalf *behalf
	// lines are the TCP connections of all requests but those that are upgraded.
	lines lines
	// second makes its requests over TCP connections of its own, secondLines.
	second      kubernetes.Interface
	secondLines lines
}

// Options say how connections are made.
type Options struct {
	// UserAgent is how requests present themselves.
	UserAgent string
	// Requester tells whose requests are. Optional.
	Requester Requester
	// Limits bound what is read.
	Limits bounds.Options
}

// Dial makes a connection to the cluster that joined under a name from a kubeconfig that came through the API. Nothing is sent yet.
func Dial(name string, kubeconfig []byte, o Options) (*Connection, error) {
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	token := bearer.NewSource(config.BearerToken)
	config.BearerToken = ""
	config.Wrap(token.Over)
	c, err := dial(name, config, o)
	if err != nil {
		return nil, err
	}
	c.Token = token
	return c, nil
}

// dial makes a connection from a kubeconfig that has been checked.
func dial(name string, config *rest.Config, o Options) (*Connection, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = o.UserAgent
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext

	c := &Connection{
		Name: name, Config: config, lines: newLines(config.Dial), secondLines: newLines(config.Dial), behalf: &behalf{who: o.Requester},
	}
	var err error
	if c.Host, err = url.Parse(strings.TrimSuffix(config.Host, "/") + "/"); err != nil {
		return nil, fmt.Errorf("the kubeconfig's server is not a URL: %w", err)
	}
	if c.Transport, err = transportOver(config, c.lines); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	c.Transport = c.behalf.over(c.Transport)
	limits := o.Limits
	limits.Base = c.Host.Path
	httpClient := &http.Client{Transport: bounds.NewReader(newPatience(redirects.Refuse(c.Transport)), limits)}
	if c.Client, err = kubernetes.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.Dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.Metadata, err = metadata.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	secondTransport, err := transportOver(config, c.secondLines)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.second, err = kubernetes.NewForConfigAndClient(config, &http.Client{Transport: bounds.NewReader(redirects.Refuse(secondTransport), limits)}); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.UpgradeTransport, err = upgradeTransport(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	c.UpgradeTransport = c.behalf.overUpgrades(c.UpgradeTransport)
	return c, nil
}

// transportOver returns a transport whose TCP connections are the dialer's.
func transportOver(config *rest.Config, over lines) (http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.Dial = over.DialContext
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return transport, bounds.Beneath(transport)
}

// upgradeTransport is for requests that turn into another protocol. As in kubectl proxy, it is a transport of its own that does not
// offer HTTP/2, and the credential is written to the request by a transport that sends nothing.
func upgradeTransport(config *rest.Config) (proxy.UpgradeRequestRoundTripper, error) {
	transportConfig, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(transportConfig)
	if err != nil {
		return nil, err
	}
	connect := utilnet.SetOldTransportDefaults(&http.Transport{
		Proxy:           config.Proxy,
		TLSClientConfig: tlsConfig,
		DialContext:     config.Dial,
	})
	authenticate, err := transport.HTTPWrappersForConfig(transportConfig, proxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	return proxy.NewUpgradeRequestRoundTripper(connect, authenticate), nil
}

// ActAs has requests that are made on behalf of a user tell the cluster so, by acting as ourselves, whom it knows by this name, with a piece of
// information more. While the name is empty, they tell the ID of the user's request alone.
func (c *Connection) ActAs(self string) { c.behalf.self.Store(&self) }

// Anew returns a client whose requests go over TCP connections of their own, which done closes.
func (c *Connection) Anew() (client kubernetes.Interface, done func()) {
	return c.second, c.secondLines.CloseAll
}

// CarriedSince reports whether anything has come over the TCP connections that requests share since then. Then they are not dead, though they may
// be busy.
func (c *Connection) CarriedSince(then time.Time) bool { return c.lines.carriedSince(then) }

// HangUp closes the TCP connections of all requests that are under way but for upgraded ones, which makes watches begin anew: what they
// wait for will not come.
func (c *Connection) HangUp() { c.lines.CloseAll() }

// Close lets go of idle TCP connections. Requests that are under way end by their own contexts.
func (c *Connection) Close() {
	utilnet.CloseIdleConnectionsFor(c.Transport)
	utilnet.CloseIdleConnectionsFor(c.UpgradeTransport)
}
