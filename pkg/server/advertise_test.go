package server

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/server/advertised"
	"github.com/manifold-dev/manifold/pkg/server/keys"
)

func TestWherePodsFindTheLogicalCluster(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*Options)
		want    advertised.Address
		problem string
	}{
		"where it is bound": {change: func(*Options) {}, want: advertised.Address{Host: "127.0.0.1", Port: "6443"}},
		"at the address that is advertised": {
			change: func(o *Options) { o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(192, 0, 2, 7) }, want: advertised.Address{Host: "192.0.2.7", Port: "6443"},
		},
		"by the external name, at another port": {
			change: func(o *Options) {
				o.GenericServerRunOptions.ExternalHost, o.SecureServing.BindPort = "api.example", 8443
			},
			want: advertised.Address{Host: "api.example", Port: "8443"},
		},
		"where the flag says":   {change: func(o *Options) { o.AdvertiseURL = "https://pods.example:9443/" }, want: advertised.Address{Host: "pods.example", Port: "9443"}},
		"at the usual port":     {change: func(o *Options) { o.AdvertiseURL = "https://pods.example" }, want: advertised.Address{Host: "pods.example", Port: "443"}},
		"at an IPv6 address":    {change: func(o *Options) { o.AdvertiseURL = "https://[2001:db8::1]:6443" }, want: advertised.Address{Host: "2001:db8::1", Port: "6443"}},
		"not without TLS":       {change: func(o *Options) { o.AdvertiseURL = "http://pods.example" }, problem: "https://HOST:PORT"},
		"not without a host":    {change: func(o *Options) { o.AdvertiseURL = "https://:6443" }, problem: "https://HOST:PORT"},
		"not at a path":         {change: func(o *Options) { o.AdvertiseURL = "https://pods.example/east" }, problem: "more than a host and a port"},
		"not as somebody":       {change: func(o *Options) { o.AdvertiseURL = "https://me@pods.example" }, problem: "more than a host and a port"},
		"not at port 0":         {change: func(o *Options) { o.AdvertiseURL = "https://pods.example:0" }, problem: "is no port"},
		"not at a pattern":      {change: func(o *Options) { o.AdvertiseURL = "https://*.example" }, problem: "neither an address nor a host name"},
		"not at what is no URL": {change: func(o *Options) { o.AdvertiseURL = "https://pods example" }, problem: "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			test.change(o)
			got, err := o.advertised()
			switch {
			case test.problem == "" && (err != nil || got != test.want):
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || !strings.HasPrefix(err.Error(), "--advertise-url")):
				t.Errorf("got %+v, %v, want an error about the flag: %s", got, err, test.problem)
			}
		})
	}
}

// A data directory that is there already gets a certificate for the new name.
func TestTheServingCertificateCoversWhatPodsAreTold(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"127.0.0.1", "pods.example", "192.0.2.9"} {
		o := NewOptions()
		o.AdvertiseURL = "https://" + net.JoinHostPort(host, "6443")
		opened, err := openDataDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		c := &completedOptions{dir: opened, pki: keys.Store{Dir: opened.join("pki")}}
		if err := o.defaultKeys(c); err != nil {
			t.Fatal(err)
		}
		opened.Close()
		pair, err := tls.LoadX509KeyPair(c.pki.Cert(keys.ServingCert), c.pki.Key(keys.ServingCert))
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
		if api, err := c.advertised.API(c.pki.Cert(keys.Authority)); err != nil || api.Host != host || api.Port != "6443" || !strings.Contains(api.Authority, "BEGIN CERTIFICATE") {
			t.Errorf("pods are told %+v, %v", api, err)
		}
	}
}
