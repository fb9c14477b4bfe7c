package projection

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// networkPolicy goes where the pods run that it is about. Its peers are what the network of that cluster knows: pods of other clusters
// are addresses from outside there.
var networkPolicy = row[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
	resource:   networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
	kind:       "NetworkPolicy",
	namespaced: true,
	right:      rightLeads,
	delivered:  Selectable,
	fill:       func(in, out *networkingv1.NetworkPolicy, _ Part) { in.Spec.DeepCopyInto(&out.Spec) },
	selector:   func(in *networkingv1.NetworkPolicy) *metav1.LabelSelector { return &in.Spec.PodSelector },
	inForce:    func(*networkingv1.NetworkPolicy) bool { return true },
}
