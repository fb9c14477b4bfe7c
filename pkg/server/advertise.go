package server

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

// advertised is where pods in clusters find the logical cluster.
type advertised struct {
	host, port string
}

// advertised reads the flag. Without it pods are told what the server itself is told of how it is reached.
func (o *Options) advertised() (advertised, error) {
	if o.AdvertiseURL == "" {
		host := o.GenericServerRunOptions.ExternalHost
		for _, ip := range []net.IP{o.GenericServerRunOptions.AdvertiseAddress, o.SecureServing.BindAddress} {
			if host == "" && ip != nil && !ip.IsUnspecified() {
				host = ip.String()
			}
		}
		if host == "" {
			ip, err := utilnet.ResolveBindAddress(o.SecureServing.BindAddress)
			if err != nil {
				return advertised{}, fmt.Errorf("--advertise-url: it has to be given, no address of this host is known: %w", err)
			}
			host = ip.String()
		}
		return advertised{host, strconv.Itoa(o.SecureServing.BindPort)}, nil
	}
	given, err := url.Parse(o.AdvertiseURL)
	if err != nil {
		return advertised{}, fmt.Errorf("--advertise-url: %w", err)
	}
	switch {
	case given.Scheme != "https" || given.Hostname() == "":
		return advertised{}, fmt.Errorf("--advertise-url: %q is not of the form https://HOST:PORT", o.AdvertiseURL)
	case given.User != nil || given.RawQuery != "" || given.Fragment != "" || given.Path != "" && given.Path != "/":
		return advertised{}, fmt.Errorf("--advertise-url: %q has more than a host and a port, which is all that pods can be told", o.AdvertiseURL)
	}
	at := advertised{given.Hostname(), cmp.Or(given.Port(), "443")}
	if port, err := strconv.Atoi(at.port); err != nil || len(validation.IsValidPortNum(port)) > 0 {
		return advertised{}, fmt.Errorf("--advertise-url: %q is no port", at.port)
	}
	if net.ParseIP(at.host) == nil && len(validation.IsDNS1123Subdomain(at.host)) > 0 {
		return advertised{}, fmt.Errorf("--advertise-url: %q is neither an address nor a host name", at.host)
	}
	return at, nil
}

// String is the URL.
func (a advertised) String() string { return "https://" + net.JoinHostPort(a.host, a.port) }

// loopback reports whether no other machine, and no pod with a network of its own, reaches it.
func (a advertised) loopback() bool {
	ip := net.ParseIP(a.host)
	return a.host == "localhost" || ip != nil && ip.IsLoopback()
}

// cover has a serving certificate cover it.
func (a advertised) cover(names *certutil.AltNames) {
	if ip := net.ParseIP(a.host); ip != nil {
		names.IPs = append(names.IPs, ip)
	} else {
		names.DNSNames = append(names.DNSNames, a.host)
	}
}

// api is what pods are told, with the certificate of an authority that is in a file.
func (a advertised) api(authority string) (projection.API, error) {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return projection.API{}, fmt.Errorf("the authority that pods are told: %w", err)
	}
	return projection.API{Host: a.host, Port: a.port, Authority: string(ca)}, nil
}
