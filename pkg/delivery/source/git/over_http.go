package git

import (
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/manifold-dev/manifold/internal/outbound"
)

// overHTTP starts sessions with servers that speak HTTP. What is called for is closed with the session.
func (c *Client) overHTTP(credentials Credentials) (transport.Transport, error) {
	roots, err := outbound.Roots(credentials.CA)
	if err != nil {
		return nil, err
	}
	over := &http.Transport{
		DialContext:           outbound.Dialer(c.policy.Allow).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: c.limits.Timeout,
		DisableKeepAlives:     true,
	}
	client := &http.Client{Transport: bounded{over, c.limits}, CheckRedirect: outbound.SameHost}
	return githttp.NewClientWithOptions(client, nil), nil
}

func httpAuth(c Credentials) transport.AuthMethod {
	if !c.forHTTP() {
		return nil
	}
	return &githttp.BasicAuth{Username: c.Username, Password: c.Password}
}

// bounded keeps answers below the limits. The list of refs is read into memory, as is what a server says about an error.
type bounded struct {
	http.RoundTripper
	limits Limits
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	most := b.limits.Pack + mostOverhead
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		most = mostErrorBody
	case strings.HasSuffix(request.URL.Path, "/info/refs"):
		most = mostRefs
	}
	response.Body = http.MaxBytesReader(nil, response.Body, most)
	return response, nil
}

const (
	// mostRefs bounds the list of refs, in bytes: some 300,000 of them.
	mostRefs = 32 << 20
	// mostErrorBody bounds what is read of an answer that is an error.
	mostErrorBody = 4 << 10
	// mostOverhead is left for what a server says beside the pack.
	mostOverhead = 16 << 20
)
