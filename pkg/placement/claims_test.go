package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestStorageClassOf(t *testing.T) {
	classes := &v1alpha1.ClusterClasses{StorageClasses: []v1alpha1.ClusterStorageClass{
		{Name: "fast", WaitForFirstConsumer: true}, {Name: "slow", Default: true},
	}}
	none := ""
	fast, absent := "fast", "absent"
	for name, test := range map[string]struct {
		named *string
		beta  string
		want  string
	}{
		"the one that is named":             {named: &fast, want: "fast"},
		"the default if none is":            {want: "slow"},
		"none, if none is to be":            {named: &none},
		"none, if there is none":            {named: &absent},
		"one that the old annotation names": {beta: "fast", want: "fast"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: test.named}}
			if test.beta != "" {
				claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: test.beta}
			}
			got := ""
			if class := StorageClassOf(claim, classes); class != nil {
				got = class.Name
			}
			if got != test.want {
				t.Errorf("class %q, want %q", got, test.want)
			}
		})
	}
}
