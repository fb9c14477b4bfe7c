package summary

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Ingress returns the status of an Ingress: the points where the clusters that report let traffic in, sorted and each once. A silent
// cluster keeps its points: unreachable for Manifold is not unreachable for users. One whose points have been withdrawn has none.
func Ingress(reports map[string]Report) networkingv1.IngressStatus {
	var all []networkingv1.IngressLoadBalancerIngress
	for _, cluster := range clustersOf(reports) {
		if in := live[*networkingv1.Ingress](reports[cluster]); in != nil && !reports[cluster].withholds() {
			for _, point := range in.Status.LoadBalancer.Ingress {
				all = append(all, *point.DeepCopy())
			}
		}
	}
	slices.SortStableFunc(all, func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
	})
	var out networkingv1.IngressStatus
	for _, point := range all {
		known := slices.ContainsFunc(out.LoadBalancer.Ingress, func(o networkingv1.IngressLoadBalancerIngress) bool {
			return equality.Semantic.DeepEqual(o, point)
		})
		if !known {
			out.LoadBalancer.Ingress = append(out.LoadBalancer.Ingress, point)
		}
	}
	return out
}

var ingressKind = register(row[networkingv1.Ingress, *networkingv1.Ingress]{
	resource:  networkingv1.SchemeGroupVersion.WithResource("ingresses"),
	sane:      saneIngress,
	summarise: func(out *networkingv1.Ingress, from Input) { out.Status = Ingress(from.Reports) },
	addresses: func(live *networkingv1.Ingress) (out []string) {
		for _, point := range live.Status.LoadBalancer.Ingress {
			out = append(out, point.IP, point.Hostname)
		}
		return out
	},
	without: func(out *networkingv1.Ingress, gone func(...string) bool) {
		out.Status.LoadBalancer.Ingress = slices.DeleteFunc(out.Status.LoadBalancer.Ingress, func(p networkingv1.IngressLoadBalancerIngress) bool {
			return gone(p.IP, p.Hostname)
		})
	},
})
