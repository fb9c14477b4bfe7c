package projection

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func byLabels(pairs ...string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		out.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return out
}

func byExpression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestSelectorsMeetTheLabelsOfTemplates(t *testing.T) {
	for name, test := range map[string]struct {
		selector *metav1.LabelSelector
		labels   map[string]string
		want     bool
	}{
		"all, by an empty selector":                {selector: byLabels(), labels: map[string]string{"app": "web"}, want: true},
		"also those without labels":                {selector: byLabels(), want: true},
		"none without a selector at all":           {labels: map[string]string{"app": "web"}},
		"those of its labels":                      {byLabels("app", "web"), map[string]string{"app": "web", "v": "1"}, true},
		"none of other labels":                     {byLabels("app", "web"), map[string]string{"app": "api"}, false},
		"none that lack a label":                   {byLabels("app", "web"), nil, false},
		"those of an expression":                   {byExpression("app", metav1.LabelSelectorOpIn, "web", "api"), map[string]string{"app": "api"}, true},
		"none of an expression that excludes them": {byExpression("app", metav1.LabelSelectorOpNotIn, "web"), map[string]string{"app": "web"}, false},
		"none by a selector that makes no sense":   {byExpression("app", "Near", "web"), map[string]string{"app": "web"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			web := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}}}
			of := kindOf(t, web)
			budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: test.selector}}
			if got := kindOf(t, budget).Selects(budget, of, web); got != test.want {
				t.Errorf("a PodDisruptionBudget selects: %t, want %t", got, test.want)
			}
			if test.selector == nil {
				return
			}
			policy := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: *test.selector}}
			if got := kindOf(t, policy).Selects(policy, of, web); got != test.want {
				t.Errorf("a NetworkPolicy selects: %t, want %t", got, test.want)
			}
			if len(test.selector.MatchLabels) == 0 {
				return
			}
			service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: test.selector.MatchLabels}}
			if got := kindOf(t, service).Selects(service, of, web); got != test.want {
				t.Errorf("a Service selects: %t, want %t", got, test.want)
			}
			service.Spec.Type = corev1.ServiceTypeExternalName
			if kindOf(t, service).Selects(service, of, web) {
				t.Error("a Service that is an outside name selects")
			}
		})
	}
}

func TestAServiceWithoutASelectorSelectsNoPods(t *testing.T) {
	service, web := &corev1.Service{}, &appsv1.Deployment{}
	if kindOf(t, service).Selects(service, kindOf(t, web), web) {
		t.Error("it selects")
	}
	settings := &corev1.ConfigMap{}
	if kindOf(t, settings).Selects(settings, kindOf(t, web), web) || kindOf(t, service).Selects(service, kindOf(t, settings), settings) {
		t.Error("something selects that has no selector, or is selected without pods")
	}
}

func TestSelectorsMeetTheLabelsThatControllersGive(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{Template: template}}
	daemons := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}}
	own := deployment.DeepCopy()
	own.Spec.Template.Labels["pod-template-hash"] = "mine"
	for name, test := range map[string]struct {
		workload Object
		selector *metav1.LabelSelector
		want     bool
	}{
		"one revision of a Deployment":                {deployment, byLabels("app", "web", "pod-template-hash", "6d5f8c9b7"), true},
		"not that of another Deployment":              {deployment, byLabels("app", "api", "pod-template-hash", "6d5f8c9b7"), false},
		"not what the template says otherwise":        {own, byLabels("pod-template-hash", "6d5f8c9b7"), false},
		"one pod of a StatefulSet by its name":        {set, byLabels("statefulset.kubernetes.io/pod-name", "db-0"), true},
		"two pods of a StatefulSet by their names":    {set, byExpression("statefulset.kubernetes.io/pod-name", metav1.LabelSelectorOpIn, "api-0", "db-1"), true},
		"not one of another StatefulSet":              {set, byLabels("app", "web", "statefulset.kubernetes.io/pod-name", "api-0"), false},
		"not one of a StatefulSet with a longer name": {set, byLabels("statefulset.kubernetes.io/pod-name", "db-old-0"), false},
		"one pod of a StatefulSet by its ordinal":     {set, byLabels("app", "web", "apps.kubernetes.io/pod-index", "2"), true},
		"one revision of a StatefulSet":               {set, byLabels("app", "web", "controller-revision-hash", "db-7f"), true},
		"one revision of a DaemonSet":                 {daemons, byLabels("app", "web", "controller-revision-hash", "7f", "pod-template-generation", "2"), true},
		"the pods of a zone":                          {deployment, byLabels("app", "web", "topology.kubernetes.io/zone", "west-a"), true},
		"a label that no controller gives":            {set, byLabels("app", "web", "role", "leader"), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: test.selector}}
			if got := kindOf(t, in).Selects(in, kindOf(t, test.workload), test.workload); got != test.want {
				t.Errorf("Selects = %t, want %t", got, test.want)
			}
		})
	}
	if len(template.Labels) != 1 {
		t.Errorf("the template has been changed: %v", template.Labels)
	}
}
