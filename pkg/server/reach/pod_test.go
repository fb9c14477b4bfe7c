package reach

import "testing"

func TestAddressesOfPodsAreReadBack(t *testing.T) {
	for name, want := range map[string]podPort{
		"a plain pod":               {"shop", "web-1", "6e2c", 8443},
		"a pod with dots":           {"shop", "web.v1.2-1", "6e2c", 1},
		"a pod named like a host":   {"shop", "a.pod.manifold.invalid", "6e2c", 443},
		"a pod at the last port":    {"shop", "web-1", "0b6e4d1e-6b0f-4f0c-9a39-0f0e7c1f1b1e", 65535},
		"a pod of another one's ns": {"web-1", "shop", "6e2c", 8443},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := parse(want.String()); !ok || got != want {
				t.Errorf("%s is read as %+v, %v", want, got, ok)
			}
		})
	}
}

func TestOtherAddressesAreNoPods(t *testing.T) {
	for name, address := range map[string]string{
		"an IP address":            "10.0.0.1:443",
		"an IPv6 address":          "[::1]:443",
		"a name":                   "hook.shop.svc:443",
		"our suffix alone":         "pod.manifold.invalid:443",
		"a name that is too short": "web.shop.pod.manifold.invalid:443",
		"no port":                  "web.shop.6e2c.pod.manifold.invalid",
		"a port by name":           "web.shop.6e2c.pod.manifold.invalid:https",
		"a port that is none":      "web.shop.6e2c.pod.manifold.invalid:65536",
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := parse(address); ok {
				t.Errorf("%s is read as %+v", address, got)
			}
		})
	}
}
