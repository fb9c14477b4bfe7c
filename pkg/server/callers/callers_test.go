package callers

import (
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhoSendsFromManyAddressesOfHisOwnIsOneCaller(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.7:1234":                       "192.0.2.7",
		"[::ffff:192.0.2.7]:1234":              "192.0.2.7",
		"[2001:db8:1:2::1]:1234":               "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff:ffff:ffff:ffff]:1": "2001:db8:1:2::/64",
		"[2001:db8:1:3::1]:1234":               "2001:db8:1:3::/64",
		"[fe80::1%eth0]:1234":                  "fe80::/64",
		"[::1]:1234":                           "::/64",
		"@":                                    "@",
		"name:1234":                            "name",
	} {
		if got := AddressOf(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s counts as %q, want %q", from, got, want)
		}
	}
	limits := NewLimits(clocktesting.NewFakePassiveClock(time.Now()), time.Minute, 1)
	if !limits.Take(AddressOf(&http.Request{RemoteAddr: "[2001:db8::1]:1"})) || limits.Take(AddressOf(&http.Request{RemoteAddr: "[2001:db8::2]:1"})) {
		t.Error("another address of the same network is counted anew")
	}
}
