package bootstrap

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestOlderServiceRangesAreWidened(t *testing.T) {
	const four, six = "10.0.0.0/16", "fd00:10::/112"
	for name, tt := range map[string]struct {
		began      []string
		earlier    []string // what was added at an earlier start
		configured []string
		want       []string // what is added, as "name range"
	}{
		"they are those that are configured":      {began: []string{four}, configured: []string{four}},
		"they hold the one that is configured":    {began: []string{"fd00::/108", "10.0.0.0/8"}, configured: []string{four}},
		"they are a part of what is configured":   {began: []string{"10.0.0.0/24"}, configured: []string{four}, want: []string{"manifold-services 10.0.0.0/16"}},
		"they are others than what is configured": {began: []string{"10.96.0.0/16"}, configured: []string{four}, want: []string{"manifold-services 10.0.0.0/16"}},
		"both families are configured by now": {
			began: []string{"10.0.0.0/24"}, configured: []string{four, six},
			want: []string{"manifold-services 10.0.0.0/16", "manifold-services-fd00-10---112 fd00:10::/112"},
		},
		"only the second one is new": {began: []string{four, "fd00::/112"}, configured: []string{four, six}, want: []string{"manifold-services fd00:10::/112"}},
		"they were widened to another one before": {
			began: []string{"10.0.0.0/24"}, earlier: []string{"10.1.0.0/16"}, configured: []string{four}, want: []string{"manifold-services-10-0-0-0-16 10.0.0.0/16"},
		},
		"they were widened to more before": {began: []string{"10.0.0.0/24"}, earlier: []string{"10.0.0.0/8"}, configured: []string{four}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(&networkingv1.ServiceCIDR{
				ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: tt.began},
			})
			cidrs := client.NetworkingV1().ServiceCIDRs()
			configured := func(ranges []string) (out []net.IPNet) {
				for _, text := range ranges {
					_, r, err := net.ParseCIDR(text)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, *r)
				}
				return append(out, net.IPNet{}) // a family that is not asked for
			}
			if err := WidenServiceRanges(t.Context(), cidrs, configured(tt.earlier)...); err != nil {
				t.Fatal(err)
			}
			before := added(t, client)
			for range 2 { // as in two starts
				if err := WidenServiceRanges(t.Context(), cidrs, configured(tt.configured)...); err != nil {
					t.Fatal(err)
				}
			}
			got := slices.DeleteFunc(added(t, client), func(a string) bool { return slices.Contains(before, a) })
			if !slices.Equal(got, tt.want) {
				t.Errorf("added %q, want %q", got, tt.want)
			}
		})
	}
}

// added are the ServiceCIDRs that a logical cluster did not begin with, as "name range".
func added(t *testing.T, client *fake.Clientset) (out []string) {
	t.Helper()
	all, err := client.NetworkingV1().ServiceCIDRs().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Items {
		if c.Name != "kubernetes" {
			out = append(out, fmt.Sprintf("%s %s", c.Name, strings.Join(c.Spec.CIDRs, ",")))
		}
	}
	slices.Sort(out)
	return out
}
