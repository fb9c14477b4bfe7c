package outbound

import (
	"net"
	"testing"
)

func TestWhatIsNoAddressOfAnotherMachineIsNotReachable(t *testing.T) {
	for address, want := range map[string]bool{
		"192.0.2.7":              true,
		"10.1.2.3":               true,
		"2001:db8::1":            true,
		"127.0.0.1":              false,
		"127.8.9.10":             false,
		"::1":                    false,
		"::ffff:127.0.0.1":       false,
		"::127.0.0.1":            false,
		"64:ff9b::7f00:1":        false,
		"64:ff9b::a9fe:a9fe":     false,
		"169.254.169.254":        false,
		"::ffff:169.254.169.254": false,
		"fe80::1":                false,
		"fd00:ec2::254":          false,
		"100.100.100.200":        false,
		"::ffff:168.63.129.16":   false,
		"0.0.0.0":                false,
		"0.1.2.3":                false,
		"::":                     false,
		"224.0.0.1":              false,
		"ff02::1":                false,
		"255.255.255.255":        false,
	} {
		if got := Reachable(net.ParseIP(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if Reachable(nil) {
		t.Error("no address at all is reachable")
	}
}
