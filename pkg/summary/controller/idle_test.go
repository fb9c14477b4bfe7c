package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestRevisionOfADeploymentThatRunsNowhere(t *testing.T) {
	const onEast = `{"east":{"replicas":3}}`
	paused := ofImage("web:1", 2)
	paused.Spec.Paused = true
	silent := cluster("east", metav1.ConditionUnknown)
	first := ofImage("web:1", 1)
	history := summary.ReplicaSet(first, projection.TemplateHash(&first.Spec.Template), nil, nil, nil)
	history.Annotations[annotationRevision] = "1"
	theirs := history.DeepCopy()
	theirs.OwnerReferences = nil
	for name, test := range map[string]struct {
		objects    []runtime.Object
		deployment *appsv1.Deployment
		want       string
	}{
		"it is the first":                           {deployment: ofImage("web:1", 1), want: "1"},
		"it follows the one before":                 {objects: []runtime.Object{history}, deployment: ofImage("web:2", 2), want: "2"},
		"it stays with its template":                {objects: []runtime.Object{history}, deployment: ofImage("web:1", 2), want: "1"},
		"a cluster that cannot be told tells none":  {objects: []runtime.Object{silent}, deployment: deployment(onEast, ""), want: "1"},
		"a cluster that has told of it will again":  {objects: []runtime.Object{silent}, deployment: deployment(onEast, `{"east":{"replicas":3,"generation":4}}`)},
		"what is paused does not begin":             {deployment: paused},
		"what is paused keeps what it had":          {objects: []runtime.Object{history}, deployment: paused, want: "1"},
		"what is deleted does not begin":            {deployment: holding(deleted(ofImage("web:1", 1)))},
		"somebody else's ReplicaSet is not its own": {objects: []runtime.Object{theirs}, deployment: ofImage("web:1", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(test.objects, test.deployment.DeepCopy())...)
			if err := h.sync(t.Context(), task{Key: keyOf(test.deployment)}); err != nil {
				t.Fatal(err)
			}
			d, err := h.kube.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Annotations[annotationRevision]; got != test.want {
				t.Errorf("revision %q, want %q; writes %v", got, test.want, h.writes())
			}
		})
	}
}
