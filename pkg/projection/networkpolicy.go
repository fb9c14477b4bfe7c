package projection

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// networkPolicy goes where the pods run that it is about. Its peers are what the network of that cluster knows: pods of other clusters
// are addresses from outside there.
var networkPolicy = row[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
	resource:   networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
	kind:       "NetworkPolicy",
	namespaced: true,
	fill:       func(in, out *networkingv1.NetworkPolicy, _ Part) { in.Spec.DeepCopyInto(&out.Spec) },
	selects: func(in *networkingv1.NetworkPolicy, podLabels map[string]string) bool {
		return selectorMatches(&in.Spec.PodSelector, podLabels)
	},
	inForce: func(*networkingv1.NetworkPolicy) bool { return true },
}

// selectorMatches tells whether a selector selects pods with these labels: all of them if it is empty, none if there is none. One that
// does not parse, which no API server accepts, selects nothing.
func selectorMatches(selector *metav1.LabelSelector, podLabels map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(podLabels))
}
