// Package outbound calls addresses that users name, over HTTP.
//
// Neither the address nor the answer is believed. Which machines may be called is checked when the connection is made, an answer may not lead
// elsewhere, and it is measured while it is read.
package outbound

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/manifold-dev/manifold/internal/text"
)

// ErrRefused says that a call is not allowed or makes no sense; trying again is of no use.
var ErrRefused = errors.New("not allowed")

// ErrUnfit says that credentials are of no use for a call, whatever its host says: something is missing, or cannot be read.
var ErrUnfit = fmt.Errorf("%w: credentials", ErrRefused)

// Policy says what may be called.
type Policy struct {
	// PlainHTTP allows URLs with http, CredentialsInClear that credentials are sent over it.
	PlainHTTP, CredentialsInClear bool
	// Allow reports whether an address may be called; nil stands for Reachable.
	Allow func(net.IP) bool
}

// Credentials say who calls, by a username and a password or by a bearer token.
type Credentials struct {
	Username, Password, BearerToken string
	// CA holds certificates in PEM that the server is to be trusted by, beside those of the system.
	CA []byte
}

// Any reports whether there is anything to send.
func (c Credentials) Any() bool { return c.Username != "" || c.Password != "" || c.BearerToken != "" }

// Limits bound a call. Zero stands for the default.
type Limits struct {
	// Timeout bounds all of it; 30 seconds.
	Timeout time.Duration
	// Answer bounds what is read of the answer, in bytes; 1 MiB.
	Answer int64
}

const (
	mostTime    = 30 * time.Second
	mostAnswer  = 1 << 20
	mostHeaders = 64 << 10
	mostURL     = 2048
	mostHost    = 250
	// mostRedirects bounds how often an answer may lead on.
	mostRedirects = 5
)

// URL parses an address and refuses what the policy does not allow. What is wrong with it is told without repeating it.
func (p Policy) URL(address string, credentials Credentials) (*url.URL, error) {
	if len(address) > mostURL || strings.ContainsFunc(address, unicode.IsControl) {
		return nil, fmt.Errorf("%w: url: at most %d characters, and no control characters", ErrRefused, mostURL)
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return nil, fmt.Errorf("%w: url: it must begin with https:// or http://, and name a host", ErrRefused)
	case parsed.User != nil:
		return nil, fmt.Errorf("%w: url: credentials do not belong into a URL; put them into a Secret", ErrRefused)
	case parsed.Scheme == "http" && !p.PlainHTTP:
		return nil, fmt.Errorf("%w: url: http is not allowed here; use https, or have the server's admin allow it by --outbound-http", ErrRefused)
	case parsed.Scheme == "http" && credentials.Any() && !p.CredentialsInClear:
		return nil, fmt.Errorf("%w: url: credentials are not sent over http; use https", ErrRefused)
	}
	return parsed, nil
}

// Client returns a client that calls as these credentials, within the policy and the limits. It keeps no connection open.
func (p Policy) Client(credentials Credentials, limits Limits) (*http.Client, error) {
	roots, err := Roots(credentials.CA)
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(limits.Timeout, mostTime)
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: SameHost,
		Transport: caller{credentials, cmp.Or(limits.Answer, mostAnswer), &http.Transport{
			DialContext:            Dialer(p.Allow).DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    connectWithin,
			ResponseHeaderTimeout:  timeout,
			MaxResponseHeaderBytes: mostHeaders,
			DisableKeepAlives:      true,
		}},
	}, nil
}

// caller says who calls, and measures what is answered.
type caller struct {
	credentials Credentials
	most        int64
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The client above follows no redirect to another host, so credentials reach none.
func (c caller) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	switch as := c.credentials; {
	case as.BearerToken != "":
		request.Header.Set("Authorization", "Bearer "+as.BearerToken)
	case as.Any():
		request.SetBasicAuth(as.Username, as.Password)
	}
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, c.most)
	return response, nil
}

// Roots returns the certificates that servers are trusted by; nil stands for those of the system.
func Roots(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%w: the CA holds no certificate in PEM", ErrUnfit)
	}
	return roots, nil
}

// SameHost refuses to be led to another host, which would be told the credentials or be reached from where it must not, and from https to http.
// It is for the field CheckRedirect of a client.
func SameHost(request *http.Request, via []*http.Request) error {
	switch before := via[0].URL; {
	case request.URL.Host != before.Host:
		return fmt.Errorf("%w: the answer leads to another host, %q; name that one if it is meant", ErrRefused, text.Line(request.URL.Host, mostHost))
	case request.URL.Scheme != before.Scheme && request.URL.Scheme != "https":
		return fmt.Errorf("%w: the answer leads from https to http", ErrRefused)
	case len(via) > mostRedirects:
		return fmt.Errorf("%w: the answer leads in circles", ErrRefused)
	}
	return nil
}

// Cause returns what has failed about a call without the address, which may be a secret, and without what is secret in the credentials.
func Cause(err error, credentials Credentials) string {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		err = of.Err
	}
	said := err.Error()
	for _, secret := range []string{credentials.Password, credentials.BearerToken} {
		if len(secret) >= leastSecret {
			said = strings.ReplaceAll(said, secret, "...")
		}
	}
	return text.Line(said, mostSaid)
}

const (
	// leastSecret is how long a secret is at least, in bytes, to be looked for in messages. Shorter ones are parts of ordinary words.
	leastSecret = 4
	// mostSaid bounds what is shown of a cause, of which a part may come from who was called.
	mostSaid = 600
)
