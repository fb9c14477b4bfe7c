package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	cpoptions "k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
)

// defaultServiceRange is where Services get their addresses if no flag says so. The stock default has room for 253 of them, as many as one
// cluster may do with, and begins with the same address.
const defaultServiceRange = "10.0.0.0/16"

// addedServiceRange names the ServiceCIDR that widens the one which a logical cluster began with.
const addedServiceRange = "manifold-services"

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

// widenServiceRange adds the configured range to those that Services get their addresses from, if the logical cluster began with another
// one: the range that it began with cannot be changed.
func widenServiceRange(ctx context.Context, cidrs networkingclient.ServiceCIDRInterface, configured net.IPNet) error {
	began, err := cidrs.Get(ctx, defaultservicecidr.DefaultServiceCIDRName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ServiceCIDR %s: %w", defaultservicecidr.DefaultServiceCIDRName, err)
	}
	wanted, err := netip.ParsePrefix(configured.String())
	if err != nil {
		return fmt.Errorf("read the range of Services %s: %w", configured.String(), err)
	}
	for _, has := range began.Spec.CIDRs {
		if served, err := netip.ParsePrefix(has); err == nil && served.Bits() <= wanted.Bits() && served.Contains(wanted.Addr()) {
			return nil
		}
	}
	if err := ensure(ctx, cidrs, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: addedServiceRange},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{wanted.String()}},
	}); err != nil {
		return fmt.Errorf("make ServiceCIDR %s of %s: %w", addedServiceRange, wanted, err)
	}
	return nil
}
