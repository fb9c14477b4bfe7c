package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidateTolerations(t *testing.T) {
	seconds := int64(30)
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		want        []string
	}{
		"a key and a value, for ever or for a time, or everything, are fine": {tolerations: []corev1.Toleration{
			{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
			{Key: "example.com/flaky", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			{Operator: corev1.TolerationOpExists},
		}},
		"without a key only Exists has a meaning": {
			tolerations: []corev1.Toleration{{Value: "yes"}},
			want:        []string{"spec.tolerations[0].key: Required value"},
		},
		"keys and values are those of labels": {
			tolerations: []corev1.Toleration{{Key: "a b", Value: "c d"}},
			want:        []string{`spec.tolerations[0].key: Invalid value: "a b"`, `spec.tolerations[0].value: Invalid value: "c d"`},
		},
		"Exists has no value": {
			tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists, Value: "yes"}},
			want:        []string{"spec.tolerations[0].value: Forbidden"},
		},
		"numbers are not compared": {
			tolerations: []corev1.Toleration{{Key: "sla", Operator: corev1.TolerationOpGt, Value: "9"}},
			want:        []string{`spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"`},
		},
		"an effect is one that taints have": {
			tolerations: []corev1.Toleration{{Key: "gpu", Effect: "Never"}},
			want:        []string{`spec.tolerations[0].effect: Unsupported value: "Never"`},
		},
		"only NoExecute has a time": {
			tolerations: []corev1.Toleration{{Key: "gpu", TolerationSeconds: &seconds}},
			want:        []string{"spec.tolerations[0].tolerationSeconds: Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkSpec(t, v1alpha1.PlacementPolicySpec{Tolerations: test.tolerations}, test.want)
		})
	}
}
