package bootstrap

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
)

// addedServiceRange names the ServiceCIDR that widens the one which a logical cluster began with.
const addedServiceRange = "manifold-services"

// WidenServiceRange adds the configured range to those that Services get their addresses from, if the logical cluster began with another
// one: the range that it began with cannot be changed.
func WidenServiceRange(ctx context.Context, cidrs networkingclient.ServiceCIDRInterface, configured net.IPNet) error {
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
