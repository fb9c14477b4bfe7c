package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestAPolicyConcernsWhomItSelects(t *testing.T) {
	deployments, has := projection.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
	if !has {
		t.Fatal("Deployments are no kind")
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}}
	labelled := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	for name, test := range map[string]struct {
		namespace        string
		spec             v1alpha1.PlacementPolicySpec
		concerns, others bool
	}{
		"one for everything":       {concerns: true},
		"one for its labels":       {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("web")}}, concerns: true},
		"one for other labels":     {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("db")}}},
		"one for its kind":         {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment"}}}, concerns: true},
		"one for other kinds":      {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Job"}}}},
		"one that cannot be read":  {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("no value!")}}, concerns: true},
		"one of another namespace": {namespace: "other"},
		"one that keeps others from its own": {
			spec: v1alpha1.PlacementPolicySpec{
				Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("db")}, AntiAffinity: []v1alpha1.WorkloadAffinity{{}},
			},
			others: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"}, Spec: test.spec}
			if test.namespace != "" {
				p.Namespace = test.namespace
			}
			concerns, others := Concerned(p)
			if got := concerns(deployments, web); got != test.concerns || others != test.others {
				t.Errorf("it concerns the workload: %t, others: %t; want %t and %t", got, others, test.concerns, test.others)
			}
		})
	}
}

func TestAPolicyIsReadAnewWhenItHasChanged(t *testing.T) {
	reading, times := newReading(nil, nil), 0
	read := func(p *v1alpha1.PlacementPolicy) *rules.Policy {
		return reading.of(cache.MetaObjectToName(p), p, func() *rules.Policy {
			times++
			return rules.PolicyOf(p)
		})
	}
	before := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"}}
	after := before.DeepCopy()
	if read(before) != read(before) || times != 1 {
		t.Errorf("it was read %d times, want once", times)
	}
	if read(after) == read(before) || times != 3 {
		t.Errorf("it was read %d times, want anew for each change", times)
	}
}
