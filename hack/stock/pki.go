package stock

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// identity is who a certificate is for.
type identity struct {
	name   string
	groups []string
	// addresses and hosts make it a server's certificate too.
	addresses []net.IP
	hosts     []string
}

// keyPair is a certificate and its key, as PEM.
type keyPair struct {
	cert, key []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of certificate authority %q: %w", name, err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %q: %w", name, err)
	}
	return &authority{cert: certificate, key: key}, nil
}

// pair returns the authority's own certificate and key.
func (a *authority) pair() (keyPair, error) {
	return encode(a.cert, a.key)
}

// issue signs a certificate that is good for a year, as a client and as a server.
func (a *authority) issue(to identity) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("make the key of %q: %w", to.name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, fmt.Errorf("make the serial number of the certificate of %q: %w", to.name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: to.name, Organization: to.groups},
		IPAddresses:  to.addresses,
		DNSNames:     to.hosts,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign the certificate of %q: %w", to.name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return keyPair{}, fmt.Errorf("read back the certificate of %q: %w", to.name, err)
	}
	return encode(certificate, key)
}

func encode(certificate *x509.Certificate, key crypto.Signer) (keyPair, error) {
	certPEM, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode the certificate of %q: %w", certificate.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode the key of %q: %w", certificate.Subject.CommonName, err)
	}
	return keyPair{cert: certPEM, key: keyPEM}, nil
}

// pki is every key of a cluster. The names are those of kubeadm.
type pki struct {
	dir string
	// ca signs servers and users, frontProxy the aggregator's requests to extension servers.
	ca, frontProxy *authority
}

// kubeletClient is the name by which the API server shows itself to kubelets.
const kubeletClient = "kube-apiserver-kubelet-client"

// mastersGroup may do anything.
const mastersGroup = "system:masters"

// makePKI makes new keys for everything and writes them to dir.
func makePKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the keys: %w", err)
	}
	ca, err := newAuthority("kubernetes-ca")
	if err != nil {
		return nil, err
	}
	frontProxy, err := newAuthority("front-proxy-ca")
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, ca: ca, frontProxy: frontProxy}
	if err := p.writeAuthorities(); err != nil {
		return nil, err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	for file, leaf := range map[string]struct {
		by *authority
		to identity
	}{
		"apiserver": {ca, identity{name: "kube-apiserver", addresses: append(loopback, net.ParseIP(serviceIP)), hosts: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}}},
		"apiserver-kubelet-client": {ca, identity{name: kubeletClient, groups: []string{mastersGroup}}},
		"front-proxy-client":       {frontProxy, identity{name: "front-proxy-client"}},
		"controller-manager":       {ca, identity{name: "system:kube-controller-manager", addresses: loopback}},
		"scheduler":                {ca, identity{name: "system:kube-scheduler", addresses: loopback}},
		"kubelet":                  {ca, identity{name: "kubelet", addresses: loopback}},
		"metrics-server":           {ca, identity{name: "metrics-server", groups: []string{mastersGroup}, addresses: loopback, hosts: []string{metricsHost}}},
		"kwok":                     {ca, identity{name: "kwok", groups: []string{mastersGroup}}},
		"admin":                    {ca, identity{name: "kubernetes-admin", groups: []string{mastersGroup}}},
	} {
		pair, err := leaf.by.issue(leaf.to)
		if err != nil {
			return nil, err
		}
		if err := p.write(file, pair); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pki) writeAuthorities() error {
	for file, a := range map[string]*authority{"ca": p.ca, "front-proxy-ca": p.frontProxy} {
		pair, err := a.pair()
		if err != nil {
			return err
		}
		if err := p.write(file, pair); err != nil {
			return err
		}
	}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	if err := os.WriteFile(p.key("sa"), key, 0o600); err != nil {
		return fmt.Errorf("write the key of service accounts: %w", err)
	}
	return nil
}

func (p *pki) write(name string, pair keyPair) error {
	if err := os.WriteFile(p.cert(name), pair.cert, 0o644); err != nil {
		return fmt.Errorf("write certificate %q: %w", name, err)
	}
	if err := os.WriteFile(p.key(name), pair.key, 0o600); err != nil {
		return fmt.Errorf("write key %q: %w", name, err)
	}
	return nil
}

// cert and key return the files of a name.
func (p *pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }
