package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Reachable reports whether an address belongs to another machine that is found by routing: loopback, link-local (where clouds keep the
// credentials of machines), multicast and unspecified addresses do not, and neither do those of this machine's interfaces.
func Reachable(ip net.IP) bool { return reachable(ip, net.InterfaceAddrs) }

// reachable is told how to find the addresses of this machine, which come and go. Where nobody knows them nothing is reachable.
func reachable(ip net.IP, own func() ([]net.Addr, error)) bool {
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return false
	}
	addr = addr.Unmap()
	for prefix, at := range translated {
		if prefix.Contains(addr) {
			bytes := addr.As16()
			addr = netip.AddrFrom4([4]byte(bytes[at : at+4]))
			break
		}
	}
	if addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.Contains(metadata, addr) {
		return false
	}
	if thisNetwork.Contains(addr) || addr == broadcast || slices.ContainsFunc(tunnels, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return false
	}
	interfaces, err := own()
	return err == nil && !slices.ContainsFunc(interfaces, func(of net.Addr) bool {
		network, ok := of.(*net.IPNet)
		return ok && network.IP.Equal(addr.AsSlice())
	})
}

var (
	// translated are the networks whose addresses a gateway turns into the IPv4 address that is in them, each with the byte at which that begins: those of
	// NAT64, of the same for one network, the oldest form, and 6to4.
	translated = map[netip.Prefix]int{
		netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("64:ff9b:1::/96"): 12, netip.MustParsePrefix("::/96"): 12, netip.MustParsePrefix("2002::/16"): 2,
	}
	// metadata is where clouds keep the credentials of machines although the address is no link-local one: those of Amazon by IPv6, Alibaba and Azure.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}
	// tunnels are the other networks whose addresses somebody on the way turns into an IPv4 address: Teredo, stateless translation, and further forms of NAT64
	// for one network. Nobody serves there.
	tunnels = []netip.Prefix{
		netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	}
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// connectWithin is how long a connection may take to be made.
const connectWithin = 20 * time.Second

// Dialer connects to the addresses that allow reports as allowed; nil stands for Reachable. It is asked about the address itself when the
// connection is made, so that no name can lead around it.
func Dialer(allow func(net.IP) bool) *net.Dialer {
	if allow == nil {
		allow = Reachable
	}
	return &net.Dialer{
		Timeout: connectWithin,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || !allow(to.Addr().AsSlice()) {
				return fmt.Errorf("%w: the address %s may not be called", ErrRefused, address)
			}
			return nil
		},
	}
}
