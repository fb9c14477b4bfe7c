package words

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAmountsAreReadable(t *testing.T) {
	for _, tc := range []struct {
		name  corev1.ResourceName
		value int64
		want  string
	}{
		{"cpu", 4000, "4"}, {"cpu", 1500, "1.5"}, {"cpu", 1999, "1.99"}, {"cpu", 290, "0.29"},
		{"memory", 512, "512"}, {"memory", 2047, "1.99Ki"}, {"memory", math.MaxInt64, "8Ei"}, {"memory", 0, "0"}, {"memory", 1 << 30, "1Gi"}, {"memory", 3<<30 + 1<<29, "3.5Gi"},
		{"ephemeral-storage", 5 << 40, "5Ti"}, {"pods", 110, "110"}, {"hugepages-2Mi", 1 << 22, "4Mi"},
	} {
		if got := amount(tc.name, tc.value); got != tc.want {
			t.Errorf("%d of %s reads %q, want %q", tc.value, tc.name, got, tc.want)
		}
	}
}
