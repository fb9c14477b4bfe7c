package server

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"github.com/manifold-dev/manifold/internal/outbound"
)

// Outbound says what may be called of what users name: repositories, metrics, and whoever is to be notified.
type Outbound struct {
	// Networks may be called beside all addresses that are found by routing.
	Networks []string
	// PlainHTTP allows to call without TLS, without credentials.
	PlainHTTP bool

	networks []*net.IPNet
}

func (o *Outbound) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Networks, "outbound-networks", o.Networks,
		"Networks, such as 127.0.0.0/8, in which addresses may be called that users name for repositories, metrics and notifications. "+
			"Others may be called if they are found by routing: the server's own machine and link-local addresses are not.")
	fs.BoolVar(&o.PlainHTTP, "outbound-http", o.PlainHTTP, "Whether repositories that users name may be called over http. Credentials are not sent over it.")
}

func (o *Outbound) validate() error {
	o.networks = nil
	for _, text := range o.Networks {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return fmt.Errorf("--outbound-networks: %w", err)
		}
		o.networks = append(o.networks, network)
	}
	return nil
}

// allow reports whether an address may be called.
func (o *Outbound) allow(address net.IP) bool {
	for _, network := range o.networks {
		if network.Contains(address) {
			return true
		}
	}
	return outbound.Reachable(address)
}
