package load

import "math"

// unlikely is how rarely chance may be taken for a fault.
const unlikely = 1e-6

// Expected returns the range in which the number of requests lies that go somewhere by chance p, of n: outside of it on either side lies less than one
// in a million, by the binomial distribution. Who takes turns, as most gateways do, comes closer to n*p than that.
func Expected(n int, p float64) (low, high int) {
	if p <= 0 || n <= 0 {
		return 0, 0
	}
	if p >= 1 {
		return n, n
	}
	low, high = 0, n
	for tail := chance(n, low, p); tail < unlikely; tail += chance(n, low, p) {
		low++
	}
	for tail := chance(n, high, p); tail < unlikely; tail += chance(n, high, p) {
		high--
	}
	return low, high
}

// chance is how likely exactly k of n are.
func chance(n, k int, p float64) float64 {
	all, _ := math.Lgamma(float64(n) + 1)
	these, _ := math.Lgamma(float64(k) + 1)
	others, _ := math.Lgamma(float64(n-k) + 1)
	return math.Exp(all - these - others + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}
