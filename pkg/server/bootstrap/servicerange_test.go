package bootstrap

import (
	"net"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAnOlderServiceRangeIsWidened(t *testing.T) {
	for name, tt := range map[string]struct {
		began []string
		want  []string // the range that is added
	}{
		"it is the one that is configured":      {began: []string{"10.0.0.0/16"}},
		"it holds the one that is configured":   {began: []string{"fd00::/108", "10.0.0.0/8"}},
		"it is a part of what is configured":    {began: []string{"10.0.0.0/24"}, want: []string{"10.0.0.0/16"}},
		"it is another than what is configured": {began: []string{"10.96.0.0/16"}, want: []string{"10.0.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			cidrs := fake.NewClientset(&networkingv1.ServiceCIDR{
				ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: tt.began},
			}).NetworkingV1().ServiceCIDRs()
			_, configured, err := net.ParseCIDR("10.0.0.0/16")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // as in two starts
				if err := WidenServiceRange(t.Context(), cidrs, *configured); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			if added, err := cidrs.Get(t.Context(), addedServiceRange, metav1.GetOptions{}); err == nil {
				got = added.Spec.CIDRs
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("added range %q, want %q", got, tt.want)
			}
		})
	}
}
