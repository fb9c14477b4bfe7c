package grants

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestParsePriority(t *testing.T) {
	for value, want := range map[string]*int32{
		"": nil, "0": ptr.To[int32](0), "-5": ptr.To[int32](-5), "1000000000": ptr.To[int32](1_000_000_000),
	} {
		if got, err := ParsePriority(value); err != nil || !ptr.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"1000000001", "high", "1.5", "99999999999"} {
		if got, err := ParsePriority(value); err == nil {
			t.Errorf("%q is taken for %d", value, *got)
		}
	}
}
