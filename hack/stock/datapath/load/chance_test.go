package load

import "testing"

func TestWhatChanceMakesIsExpected(t *testing.T) {
	for _, test := range []struct {
		n         int
		p         float64
		low, high int
	}{
		{0, 0.5, 0, 0},
		{10, 0.5, 0, 10}, // all of ten on one side happen once in a thousand
		{100, 0, 0, 0},
		{100, 1, 100, 100},
		{1000, 0.1, 58, 148},
		{1000, 0.5, 425, 575},
		{1000, 0.9, 852, 942},
	} {
		low, high := Expected(test.n, test.p)
		if low != test.low || high != test.high {
			t.Errorf("of %d at %g: %d to %d, want %d to %d", test.n, test.p, low, high, test.low, test.high)
		}
		if from, to := Expected(test.n, 1-test.p); test.n > 0 && (from != test.n-high || to != test.n-low) {
			t.Errorf("of %d at %g: %d to %d, which is not the other side of %d to %d", test.n, 1-test.p, from, to, low, high)
		}
	}
}
