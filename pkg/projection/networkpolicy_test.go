package projection

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsThatANetworkPolicySelects(t *testing.T) {
	kind := kindOf(t, &networkingv1.NetworkPolicy{})
	in := func(operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: operator, Values: values}}}
	}
	tests := map[string]struct {
		selector metav1.LabelSelector
		labels   map[string]string
		want     bool
	}{
		"all, by an empty selector":                {labels: map[string]string{"app": "web"}, want: true},
		"also those without labels":                {want: true},
		"those of its labels":                      {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, map[string]string{"app": "web", "v": "1"}, true},
		"none of other labels":                     {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, map[string]string{"app": "api"}, false},
		"those of an expression":                   {in(metav1.LabelSelectorOpIn, "web", "api"), map[string]string{"app": "api"}, true},
		"none of an expression that excludes them": {in(metav1.LabelSelectorOpNotIn, "web"), map[string]string{"app": "web"}, false},
		"none by a selector that makes no sense":   {in("Near", "web"), map[string]string{"app": "web"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			policy := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: test.selector}}
			if got := kind.Selects(policy, test.labels); got != test.want {
				t.Errorf("Selects = %t, want %t", got, test.want)
			}
		})
	}
}
