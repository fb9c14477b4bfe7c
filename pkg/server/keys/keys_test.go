package keys

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

var (
	today  = time.Now() // kubeadm's functions let every certificate begin at present
	served = ServingNames(net.IPv4(10, 0, 0, 1), net.IPv4(127, 0, 0, 1))
)

func ensured(t *testing.T, p Store, now time.Time, names certutil.AltNames) map[string][]byte {
	t.Helper()
	if err := p.Ensure(now, names); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(p.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		if out[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// changed are the names of files whose contents differ.
func changed(before, after map[string][]byte) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !bytes.Equal(before[name], after[name]) {
			out = append(out, name)
		}
	}
	return out
}

func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestKeysAreMadeOnceAndRenewedInTime(t *testing.T) {
	more := ServingNames(net.IPv4(10, 0, 0, 1), net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 7))
	leaves := []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key"}
	for name, test := range map[string]struct {
		later time.Duration
		names certutil.AltNames
		want  []string // files that are written anew
	}{
		"a second start keeps everything": {
			later: time.Hour, names: served,
		},
		"leaves with two thirds of their lives behind them are renewed, and nothing else": {
			later: leafLifetime - Store{}.renewBefore() + time.Hour, names: served, want: leaves,
		},
		"leaves that have ended are renewed": {
			later: 2 * leafLifetime, names: served, want: leaves,
		},
		"leaves are kept until then": {
			later: leafLifetime - Store{}.renewBefore() - time.Hour, names: served,
		},
		"another address needs another serving certificate alone": {
			names: more, want: []string{"apiserver.crt", "apiserver.key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Store{Dir: filepath.Join(t.TempDir(), "pki")}
			before := ensured(t, p, today, served)
			after := ensured(t, p, today.Add(test.later), test.names)
			if got := changed(before, after); !slices.Equal(got, test.want) {
				t.Errorf("wrote %v, want %v", got, test.want)
			}
		})
	}
}

func TestAddressThatIsNotUsedAnyMoreNeedsNoOtherCertificate(t *testing.T) {
	p := Store{Dir: t.TempDir()}
	before := ensured(t, p, today, ServingNames(net.IPv4(10, 0, 0, 1), net.IPv4(192, 0, 2, 7)))
	if got := changed(before, ensured(t, p, today, served)); len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestLeavesOfAnotherAuthorityAreReplaced(t *testing.T) {
	p := Store{Dir: t.TempDir()}
	before := ensured(t, p, today, served)
	for _, file := range []string{p.Cert(Authority), p.Key(Authority)} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key"}
	if got := changed(before, ensured(t, p, today, served)); !slices.Equal(got, want) {
		t.Errorf("wrote %v, want %v", got, want)
	}
}

// A process may end between the writes of the two files.
func TestALeafWithoutItsKeyIsReplaced(t *testing.T) {
	p := Store{Dir: t.TempDir()}
	before := ensured(t, p, today, served)
	if err := os.WriteFile(p.Key(ServingCert), before["admin.key"], 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"apiserver.crt", "apiserver.key"}
	if got := changed(before, ensured(t, p, today, served)); !slices.Equal(got, want) {
		t.Errorf("wrote %v, want %v", got, want)
	}
}

func TestAuthorityThatHasLostItsKeyIsNotReplaced(t *testing.T) {
	p := Store{Dir: t.TempDir()}
	ensured(t, p, today, served)
	if err := os.Remove(p.Key(Authority)); err != nil {
		t.Fatal(err)
	}
	if err := p.Ensure(today, served); err == nil {
		t.Error("another authority was made: every credential that was ever issued is void")
	}
}

func TestCertificatesSayWhatTheyAreFor(t *testing.T) {
	p := Store{Dir: t.TempDir()}
	files := ensured(t, p, today, served)
	roots := map[string]*x509.CertPool{}
	for _, name := range []string{"ca.crt", "front-proxy-ca.crt"} {
		cert := certificate(t, files[name])
		if !cert.IsCA {
			t.Errorf("%s is no authority", name)
		}
		roots[name] = x509.NewCertPool()
		roots[name].AddCert(cert)
	}
	for name, want := range map[string]struct {
		authority, commonName string
		organization          []string
		usage                 x509.ExtKeyUsage
	}{
		"apiserver.crt":          {"ca.crt", "kube-apiserver", nil, x509.ExtKeyUsageServerAuth},
		"admin.crt":              {"ca.crt", "manifold-admin", []string{"kubeadm:cluster-admins"}, x509.ExtKeyUsageClientAuth},
		"front-proxy-client.crt": {"front-proxy-ca.crt", "front-proxy-client", nil, x509.ExtKeyUsageClientAuth},
	} {
		cert := certificate(t, files[name])
		if cert.Subject.CommonName != want.commonName || !slices.Equal(cert.Subject.Organization, want.organization) {
			t.Errorf("%s is that of %s", name, cert.Subject)
		}
		if !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{want.usage}) {
			t.Errorf("%s is for %v, want %v", name, cert.ExtKeyUsage, want.usage)
		}
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots[want.authority], CurrentTime: today.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{want.usage}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	serving := certificate(t, files["apiserver.crt"])
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "10.0.0.1", "kubernetes.default.svc"} {
		if err := serving.VerifyHostname(name); err != nil {
			t.Errorf("the serving certificate does not cover %s: %v", name, err)
		}
	}
	if err := serving.VerifyHostname("192.0.2.7"); err == nil {
		t.Error("the serving certificate covers an address that is not served")
	}
}

func TestKeysAreReadableForTheOwnerAlone(t *testing.T) {
	p := Store{Dir: filepath.Join(t.TempDir(), "pki")}
	ensured(t, p, today, served)
	for _, file := range []string{p.Key(Authority), p.Key(ServingCert), p.Key(adminCert), p.Key(ServiceAccountKey)} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o, want 600", file, got)
		}
	}
	info, err := os.Stat(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("the folder has mode %o, want 700", got)
	}
}

func TestUnspecifiedAddressesAreNotServed(t *testing.T) {
	got := ServingNames(net.IPv4(10, 0, 0, 1), net.IPv4zero, nil, net.IPv4(192, 0, 2, 7))
	for _, ip := range got.IPs {
		if ip.IsUnspecified() {
			t.Error("the certificate is for 0.0.0.0")
		}
	}
	if !slices.ContainsFunc(got.IPs, func(ip net.IP) bool { return ip.Equal(net.IPv4(192, 0, 2, 7)) }) {
		t.Errorf("addresses %v lack the one that is bound", got.IPs)
	}
}
