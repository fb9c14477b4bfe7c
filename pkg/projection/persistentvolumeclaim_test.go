package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestOnlyVolumesThatAUserAsksForAreProjected(t *testing.T) {
	kind, _ := ForResource(persistentVolumeClaim.resource)
	for name, test := range map[string]struct {
		volume, breakdown, want string
	}{
		"no volume":                              {"", `{"east":{}}`, ""},
		"one that was asked for":                 {"mine", "", "mine"},
		"one that was asked for and is bound":    {"mine", `{"east":{},"west":{}}`, "mine"},
		"one that was asked for, and not given":  {"mine", `{"east":{"volume":"pv-1"}}`, "mine"},
		"not the one that the cluster chose":     {"pv-1", `{"east":{"volume":"pv-1"}}`, ""},
		"not the one that another cluster chose": {"pv-1", `{"north":{"volume":"pv-1"}}`, ""},
		"one when nothing is known":              {"mine", "no JSON", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: map[string]string{v1alpha1.AnnotationStatus: test.breakdown}},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: test.volume},
			}
			if got := project(t, kind, in, placement.Share{}).(*corev1.PersistentVolumeClaim).Spec.VolumeName; got != test.want {
				t.Errorf("projected with volume %q, want %q", got, test.want)
			}
		})
	}
}
