// Package advertised is where pods in clusters find the logical cluster.
package advertised

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	certutil "k8s.io/client-go/util/cert"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Address is what pods are told. Port is a number.
type Address struct {
	Host, Port string
}

// Bound is the address of a server that nobody has said it of: its external host, or else the address that it advertises, or is bound to, or else the address of
// this host that faces what it is bound to.
func Bound(host string, port int, advertise, bind net.IP) (Address, error) {
	for _, ip := range []net.IP{advertise, bind} {
		if host == "" && ip != nil && !ip.IsUnspecified() {
			host = ip.String()
		}
	}
	if host == "" {
		ip, err := utilnet.ResolveBindAddress(bind)
		if err != nil {
			return Address{}, fmt.Errorf("--advertise-url: it has to be given, no address of this host is known: %w", err)
		}
		host = ip.String()
	}
	return Address{host, strconv.Itoa(port)}, nil
}

// Parse reads the flag.
func Parse(flag string) (Address, error) {
	given, err := url.Parse(flag)
	if err != nil {
		return Address{}, fmt.Errorf("--advertise-url: %w", err)
	}
	switch {
	case given.Scheme != "https" || given.Hostname() == "":
		return Address{}, fmt.Errorf("--advertise-url: %q is not of the form https://HOST:PORT", flag)
	case given.User != nil || given.RawQuery != "" || given.Fragment != "" || given.Path != "" && given.Path != "/":
		return Address{}, fmt.Errorf("--advertise-url: %q has more than a host and a port, which is all that pods can be told", flag)
	}
	at := Address{given.Hostname(), cmp.Or(given.Port(), "443")}
	if port, err := strconv.Atoi(at.Port); err != nil || len(validation.IsValidPortNum(port)) > 0 {
		return Address{}, fmt.Errorf("--advertise-url: %q is no port", at.Port)
	}
	if net.ParseIP(at.Host) == nil && len(validation.IsDNS1123Subdomain(at.Host)) > 0 {
		return Address{}, fmt.Errorf("--advertise-url: %q is neither an address nor a host name", at.Host)
	}
	return at, nil
}

// String is the URL.
func (a Address) String() string { return "https://" + net.JoinHostPort(a.Host, a.Port) }

// Loopback reports whether no other machine, and no pod with a network of its own, reaches it.
func (a Address) Loopback() bool {
	ip := net.ParseIP(a.Host)
	return a.Host == "localhost" || ip != nil && ip.IsLoopback()
}

// Cover has a serving certificate cover it.
func (a Address) Cover(names *certutil.AltNames) {
	if ip := net.ParseIP(a.Host); ip != nil {
		names.IPs = append(names.IPs, ip)
	} else {
		names.DNSNames = append(names.DNSNames, a.Host)
	}
}

// API is what pods are told, with the certificate of an authority that is in a file.
func (a Address) API(authority string) (projection.API, error) {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return projection.API{}, fmt.Errorf("the authority that pods are told: %w", err)
	}
	return projection.API{Host: a.Host, Port: a.Port, Authority: string(ca)}, nil
}
