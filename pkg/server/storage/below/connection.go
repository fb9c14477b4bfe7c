// Package below is the way from the storage to what runs in clusters.
package below

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/manifold-dev/manifold/pkg/server/ours"
)

// Timeout bounds how long a request waits for a cluster: one that has halted keeps its connections open and says nothing.
const Timeout = 15 * time.Second

// Connection is what the storage needs of a physical cluster.
type Connection struct {
	// Name is that of the Cluster.
	Name   string
	Client kubernetes.Interface
	// Host is the address of the cluster's API server.
	Host *url.URL
	// Transport authenticates ordinary requests, UpgradeTransport those that leave HTTP behind.
	Transport        http.RoundTripper
	UpgradeTransport UpgradeRequestRoundTripper
}

// Connections finds clusters by name. The error of a cluster that is unknown or does not answer says so in a person's words.
type Connections interface {
	Connection(cluster string) (*Connection, error)
}

// UpgradeRequestRoundTripper opens connections that leave HTTP behind.
type UpgradeRequestRoundTripper = proxy.UpgradeRequestRoundTripper

// Address is where a subresource of a core object is in the cluster.
func (c *Connection) Address(namespace, resource, name, subresource string) *url.URL {
	return c.at(fmt.Sprintf("/api/v1/namespaces/%s/%s/%s/%s", namespace, resource, name, subresource))
}

// at returns the address of a path at the cluster's API server.
func (c *Connection) at(path string) *url.URL {
	out := *c.Host
	out.Path, out.RawPath = strings.TrimSuffix(out.Path, "/")+path, ""
	return &out
}

// Handler hands requests through to location. Links and redirects in the answer are left as they come, for the user alone to follow: the
// cluster's API server has rewritten them to paths of its own, which are the same above.
func (c *Connection) Handler(location *url.URL, upgrade bool, responder rest.Responder) http.Handler {
	h := proxy.NewUpgradeAwareHandler(location, c.Transport, false, upgrade, proxy.NewErrorResponder(responder))
	h.UpgradeTransport = c.UpgradeTransport
	h.UseLocationHost = true
	h.MaxBytesPerSec = capabilities.Get().PerConnectionBandwidthLimitBytesPerSec
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, ours.Anonymous(r)) })
}

// ProxyMethods are the methods that the proxy subresources take.
var ProxyMethods = [...]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}

// Proxy hands requests through to a path of the cluster that ours.ProxyPath has made.
func (c *Connection) Proxy(path string, responder rest.Responder) http.Handler {
	return c.Handler(c.at(path), false, responder)
}
