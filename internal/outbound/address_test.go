package outbound

import (
	"errors"
	"net"
	"testing"
)

// none are the addresses of a machine without interfaces.
func none() ([]net.Addr, error) { return nil, nil }

func TestTheAddressesOfThisMachineAreNotReachable(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.ParseIP("192.0.2.7"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	for address, want := range map[string]bool{
		"192.0.2.7":         false,
		"::ffff:192.0.2.7":  false,
		"64:ff9b::c000:207": false,
		"2001:db8::7":       false,
		"192.0.2.8":         true,
		"2001:db8::8":       true,
	} {
		if got := reachable(net.ParseIP(address), own); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if reachable(net.ParseIP("192.0.2.8"), func() ([]net.Addr, error) { return nil, errors.New("no interfaces") }) {
		t.Error("an address is reachable though nobody knows whether it is this machine's")
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip := address.(*net.IPNet).IP; Reachable(ip) {
			t.Errorf("%s is an address of this machine, and reachable", ip)
		}
	}
}

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
		"64:ff9b:1::a9fe:a9fe":   false,
		"2002:7f00:1::1":         false,
		"2002:a9fe:a9fe::":       false,
		"2002:c000:207::1":       true,
		"169.254.169.254":        false,
		"::ffff:169.254.169.254": false,
		"fe80::1":                false,
		"2002:a9fe:a9fe::1":      false,
		"2001:0:a9fe:a9fe::1":    false,
		"::ffff:0:a9fe:a9fe":     false,
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
		if got := reachable(net.ParseIP(address), none); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if Reachable(nil) {
		t.Error("no address at all is reachable")
	}
}
