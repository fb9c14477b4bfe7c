package pods

import (
	"fmt"
	"net/netip"
)

// Port numbers below privileged are for the superuser alone, so a pod's port p of that kind is at privilegedOffset+p.
const (
	privileged       = 1024
	privilegedOffset = 20000
)

// firstPodRange is where the addresses of pods begin: 10.128.0.0.
const firstPodRange = 128

// IsPod reports whether an address is of those that the pods of stock clusters have.
func IsPod(ip netip.Addr) bool {
	return ip.Is4() && ip.As4()[0] == 10 && ip.As4()[1] >= firstPodRange
}

// Listener returns where a pod with the given address really listens for what is sent to its port: 10.A.B.C is at 127.A.B.C.
func Listener(ip netip.Addr, port uint16) (netip.AddrPort, error) {
	if !IsPod(ip) {
		return netip.AddrPort{}, fmt.Errorf("%s is not an address of a stock cluster's pods", ip)
	}
	octets := ip.As4()
	octets[0] = 127
	if port < privileged {
		port += privilegedOffset
	}
	return netip.AddrPortFrom(netip.AddrFrom4(octets), port), nil
}
