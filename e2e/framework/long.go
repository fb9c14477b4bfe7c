package framework

import "testing"

// Long leaves a test out where the short part of the end-to-end tests is asked for, as "make test" does by -short.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is no part of make test: make e2e runs it")
	}
}
