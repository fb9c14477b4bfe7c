package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidatePressure(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.PlacementPolicySpec
		want []string
	}{
		"no time at all is tolerated": {spec: v1alpha1.PlacementPolicySpec{UnschedulableTolerationSeconds: ptr.To[int64](0)}},
		"a time is tolerated and pods of lower priority are not": {spec: v1alpha1.PlacementPolicySpec{
			UnschedulableTolerationSeconds: ptr.To[int64](600), PreemptionPolicy: corev1.PreemptLowerPriority,
		}},
		"never is said as well as nothing": {spec: v1alpha1.PlacementPolicySpec{PreemptionPolicy: corev1.PreemptNever}},
		"time does not run backwards": {
			spec: v1alpha1.PlacementPolicySpec{UnschedulableTolerationSeconds: ptr.To[int64](-1)},
			want: []string{"spec.unschedulableTolerationSeconds: Invalid value: -1: must not be negative"},
		},
		"what is neither is refused": {
			spec: v1alpha1.PlacementPolicySpec{PreemptionPolicy: "Always"},
			want: []string{`spec.preemptionPolicy: Unsupported value: "Always": supported values: "Never", "PreemptLowerPriority"`},
		},
	} {
		t.Run(name, func(t *testing.T) { checkSpec(t, test.spec, test.want) })
	}
}
