package demand

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestWhatWasMadeThroughAViewIsWantedInThatClusterAlone(t *testing.T) {
	reader := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1},"west":{"replicas":1}}`},
	}}
	reader.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	reader.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
	}}}}}
	for name, test := range map[string]struct {
		annotations map[string]string
		needed      bool
		east, west  bool
	}{
		"what was made without one goes where it is needed":    {nil, true, true, true},
		"what was made through one does not":                   {map[string]string{v1alpha1.AnnotationView: "east", v1alpha1.AnnotationClusters: "east"}, true, true, false},
		"and is there although nothing needs it":               {map[string]string{v1alpha1.AnnotationView: "east", v1alpha1.AnnotationClusters: "east"}, false, true, false},
		"a pin that somebody has changed takes it to no other": {map[string]string{v1alpha1.AnnotationView: "east", v1alpha1.AnnotationClusters: "west"}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", Annotations: test.annotations}}
			objects := []projection.Object{settings}
			if test.needed {
				objects = append(objects, reader)
			}
			g := graphOf(t, clusters{}, objects...)
			kind, _ := projection.ForResource(identity.ConfigMaps)
			for cluster, want := range map[string]bool{"east": test.east, "west": test.west} {
				if got := g.Wanted(kind, settings, cluster); got != want {
					t.Errorf("wanted in %s: %t, want %t", cluster, got, want)
				}
				if got := g.NeededIn(kind, settings, cluster); got != want {
					t.Errorf("needed in %s: %t, want %t", cluster, got, want)
				}
				if got := g.MayHave(identity.KeyOf(kind, settings), settings, cluster); got != want {
					t.Errorf("may be in %s: %t, want %t", cluster, got, want)
				}
			}
		})
	}
}
