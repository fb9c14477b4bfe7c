package server

import (
	"net"

	cpoptions "k8s.io/kubernetes/pkg/controlplane/apiserver/options"
)

// defaultServiceRange is where Services get their addresses if no flag says so. The stock default has room for 253 of them, as many as one
// cluster may do with, and begins with the same address.
const defaultServiceRange = "10.0.0.0/16"

// serviceRange returns the first service range as the stock server reads it, and the address of the "kubernetes" Service in it.
func serviceRange(flag string) (net.IPNet, string, net.IP, error) {
	if flag == "" {
		flag = defaultServiceRange
	}
	_, given, err := net.ParseCIDR(firstOf(flag))
	if err != nil {
		return net.IPNet{}, "", nil, err
	}
	ipRange, ip, err := cpoptions.ServiceIPRange(*given)
	return ipRange, ipRange.String(), ip, err
}
