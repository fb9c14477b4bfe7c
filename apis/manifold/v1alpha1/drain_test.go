package v1alpha1

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDrainTimesAreWholeSecondsWithinBounds(t *testing.T) {
	for value, want := range map[string]struct {
		drain time.Duration
		valid bool
	}{
		"0": {0, true}, "30": {30 * time.Second, true}, "3600": {time.Hour, true},
		"": {}, "-1": {}, "3601": {}, "030": {}, "+30": {}, "30s": {}, "1.5": {}, "99999999999999999999": {}, " 30": {},
	} {
		drain, said := DrainOf(map[string]string{AnnotationDrainSeconds: value})
		if drain != want.drain || said != want.valid {
			t.Errorf("%q gives %s (%t), want %s (%t)", value, drain, said, want.drain, want.valid)
		}
		errs := ValidateDrain(value, field.NewPath("metadata", "annotations").Key(AnnotationDrainSeconds))
		if want.valid != (len(errs) == 0) {
			t.Errorf("%q is refused: %v", value, errs)
		}
		for _, err := range errs {
			if err.Field != "metadata.annotations[manifold.dev/drain-seconds]" {
				t.Errorf("%q: the error names %s", value, err.Field)
			}
		}
	}
	if _, said := DrainOf(nil); said {
		t.Error("nothing said counts as something")
	}
}
