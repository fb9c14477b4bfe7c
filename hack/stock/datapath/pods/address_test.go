package pods

import (
	"net/netip"
	"testing"
)

func TestAPodListensAtALoopbackAddress(t *testing.T) {
	tests := map[string]struct {
		ip   string
		port uint16
		want string
	}{
		"its address with 127 in front":                    {ip: "10.130.2.7", port: 8080, want: "127.130.2.7:8080"},
		"a port of the superuser's is at another":          {ip: "10.255.0.1", port: 80, want: "127.255.0.1:20080"},
		"the address of a Service is none of a pod":        {ip: "10.96.0.10", port: 80},
		"nor is one that kwok gives where no range is set": {ip: "10.127.0.1", port: 80},
		"nor is one of another network":                    {ip: "192.168.1.1", port: 80},
		"nor is one of IPv6":                               {ip: "fd00::1", port: 80},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Listener(netip.MustParseAddr(tt.ip), tt.port)
			if (err != nil) != (tt.want == "") {
				t.Fatalf("Listener() = %s, %v", got, err)
			}
			if err == nil && got.String() != tt.want {
				t.Errorf("Listener() = %s, want %s", got, tt.want)
			}
		})
	}
}
