package bootstrap

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
)

// addedServiceRange names the ServiceCIDR that widens the one which a logical cluster began with. Further ones end in what they add.
const addedServiceRange = "manifold-services"

// WidenServiceRanges adds the configured ranges to those that Services get their addresses from, as far as these lack them: the ranges that a
// logical cluster began with cannot be changed. A range without an address is none.
func WidenServiceRanges(ctx context.Context, cidrs networkingclient.ServiceCIDRInterface, configured ...net.IPNet) error {
	if _, err := cidrs.Get(ctx, defaultservicecidr.DefaultServiceCIDRName, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("read ServiceCIDR %s: %w", defaultservicecidr.DefaultServiceCIDRName, err)
	}
	all, err := cidrs.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	for _, r := range configured {
		if r.IP == nil {
			continue
		}
		wanted, err := netip.ParsePrefix(r.String())
		if err != nil {
			return fmt.Errorf("read the range of Services %s: %w", r.String(), err)
		}
		if serves(all.Items, wanted) {
			continue
		}
		name := addedServiceRange
		if slices.ContainsFunc(all.Items, func(c networkingv1.ServiceCIDR) bool { return c.Name == name }) {
			name += "-" + strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(wanted.String())
		}
		added := networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{wanted.String()}},
		}
		if err := ensure(ctx, cidrs, &added); err != nil {
			return fmt.Errorf("make ServiceCIDR %s of %s: %w", name, wanted, err)
		}
		all.Items = append(all.Items, added)
	}
	return nil
}

// serves reports whether Services get addresses from all of a range.
func serves(cidrs []networkingv1.ServiceCIDR, wanted netip.Prefix) bool {
	return slices.ContainsFunc(cidrs, func(c networkingv1.ServiceCIDR) bool {
		return c.DeletionTimestamp == nil && slices.ContainsFunc(c.Spec.CIDRs, func(has string) bool {
			served, err := netip.ParsePrefix(has)
			return err == nil && served.Bits() <= wanted.Bits() && served.Contains(wanted.Addr())
		})
	})
}
