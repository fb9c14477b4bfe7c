package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidateMove(t *testing.T) {
	value := func(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }
	for name, test := range map[string]struct {
		surge, unavailable *intstr.IntOrString
		want               []string
	}{
		"nothing is fine":  {},
		"numbers are fine": {surge: value("3"), unavailable: value("0")},
		"parts are fine":   {surge: value("150%"), unavailable: value("100%")},
		"no surge is fine where the workload says what may be missing": {surge: value("0")},
		"nothing could ever move": {
			surge: value("0"), unavailable: value("0%"), want: []string{`spec.move.maxUnavailable: Invalid value: "0%": may not be 0 when maxSurge is 0`},
		},
		"what is no number": {
			surge: value("many"), unavailable: value("3.5"),
			want: []string{`spec.move.maxSurge: Invalid value: "many": must be a whole number`, `spec.move.maxUnavailable: Invalid value: "3.5"`},
		},
		"what is negative": {
			surge: value("-1"), unavailable: value("-5%"),
			want: []string{`spec.move.maxSurge: Invalid value: "-1": must not be negative`, `spec.move.maxUnavailable: Invalid value: "-5%"`},
		},
		"more than all cannot be missing": {unavailable: value("101%"), want: []string{`spec.move.maxUnavailable: Invalid value: "101%": must not be more than 100%`}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.PlacementPolicySpec{Move: &v1alpha1.Move{MaxSurge: test.surge, MaxUnavailable: test.unavailable}}
			checkSpec(t, spec, test.want)
		})
	}
}
