package identity

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const toEast = `{"east":{"replicas":2}}`

// deployment has a decision, and a breakdown that names a cluster.
func deployment(decision, breakdown string) *appsv1.Deployment {
	annotations := map[string]string{}
	if decision != "" {
		annotations[v1alpha1.AnnotationPlacement] = decision
	}
	if breakdown != "" {
		annotations[v1alpha1.AnnotationStatus] = breakdown
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: annotations}}
}

func TestWhatAClusterHasToDoWith(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
		p.Annotations = map[string]string{}
		change(p)
		return p
	}
	for name, test := range map[string]struct {
		above projection.Object
		want  bool
	}{
		"what is decided to run there":     {deployment(toEast, ""), true},
		"what still does by the breakdown": {deployment(`{"west":{"replicas":2}}`, `{"east":{"replicas":2}}`), true},
		"not what runs elsewhere":          {deployment(`{"west":{"replicas":2}}`, `{"north":{"replicas":2}}`), false},
		"not what names it by chance":      {deployment(`{"west":{"replicas":2}}`, `{"west":{"problem":"\"east\""}}`), false},
		"not what nobody can read":         {deployment("", `["east"]`), false},
		"not what is nowhere":              {deployment("", ""), false},
		"a pod that is placed there":       {pod(func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPlacement] = toEast }), true},
		"a pod that waits there":           {pod(func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPodCluster] = "east" }), true},
		"not a pod that waits somewhere else": {pod(func(p *corev1.Pod) {
			p.Annotations[v1alpha1.AnnotationPlacement] = toEast
			p.Annotations[v1alpha1.AnnotationPodCluster] = "west"
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Involves(test.above, "east"); got != test.want {
				t.Errorf("it has to do with it: %t, want %t", got, test.want)
			}
		})
	}
}

func TestOrdinalsThatAClusterReports(t *testing.T) {
	for name, test := range map[string]struct {
		breakdown string
		want      placement.Range
		named     bool
	}{
		"those of the breakdown":             {`{"east":{"start":3,"replicas":2}}`, placement.Range{Start: 3, End: 5}, true},
		"none if it is not named":            {`{"west":{"start":3,"replicas":2}}`, placement.Range{}, false},
		"none if the breakdown is no object": {`["east"]`, placement.Range{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, named := ReportedOrdinals(Workload{Object: deployment("", test.breakdown)}, "east")
			if got != test.want || named != test.named {
				t.Errorf("ordinals %v (%t), want %v (%t)", got, named, test.want, test.named)
			}
		})
	}
}

// A pod names its node as its user likes.
func TestThatAPodNamesANodeSaysNothingOfWhereItIs(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "east"}}
	if in := PodIn(pod); in != "" || Concerns(pod, "east") {
		t.Errorf("it is in %q by its own word", in)
	}
	pod.Annotations = map[string]string{v1alpha1.AnnotationPodUID: "1"}
	if in := PodIn(pod); in != "east" || !Concerns(pod, "east") {
		t.Errorf("it is in %q, want where it was made and got a node", in)
	}
}
