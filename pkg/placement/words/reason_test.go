package words

import (
	"testing"
)

// Every code has its own words, for one cluster and for several.
func TestReasonsReadAsProse(t *testing.T) {
	for _, tc := range []struct {
		reason   Reason
		one, two string
	}{
		{Reason{Code: ReasonNotJoined}, "has not joined", "have not joined"},
		{Reason{Code: ReasonNotPinned}, "is not pinned", "are not pinned"},
		{Reason{Code: ReasonNotSelected, Subject: "PlacementPolicy a/b"},
			"is not selected by PlacementPolicy a/b", "are not selected by PlacementPolicy a/b"},
		{Reason{Code: ReasonNoWeight, Subject: "x"}, "has no weight in x", "have no weight in x"},
		{Reason{Code: ReasonEvicted}, "is being emptied", "are being emptied"},
		{
			Reason{Code: ReasonEvicted, Subject: "{spot: yes}"},
			"is being emptied because of the taint {spot: yes}", "are being emptied because of the taint {spot: yes}",
		},
		{Reason{Code: ReasonInvalidPolicy, Subject: "x"}, "is ruled out by x", "are ruled out by x"},
		{Reason{Code: ReasonNotReady}, "is not ready", "are not ready"},
		{Reason{Code: ReasonUnreachable}, "is unreachable", "are unreachable"},
		{Reason{Code: ReasonCordoned}, "is cordoned", "are cordoned"},
		{Reason{Code: ReasonTainted, Subject: "{a: b}"}, "has the untolerated taint {a: b}", "have the untolerated taint {a: b}"},
		{Reason{Code: ReasonNotServed, Subject: "X.v1"}, "does not serve X.v1", "do not serve X.v1"},
		{Reason{Code: ReasonNoNodes}, "has no ready node", "have no ready node"},
		{Reason{Code: ReasonLacks, Subject: "cpu", Need: 250, Free: 100},
			"lacks cpu (need 0.25, free 0.1)", "lack cpu (need 0.25, free 0.1)"},
		{Reason{Code: "Odd"}, "is ruled out: Odd", "are ruled out: Odd"},
	} {
		if got := tc.reason.of(1); got != tc.one {
			t.Errorf("%s: %q, want %q", tc.reason.Code, got, tc.one)
		}
		if got := tc.reason.of(2); got != tc.two {
			t.Errorf("%s: %q, want %q", tc.reason.Code, got, tc.two)
		}
	}
}
