package server

import (
	"cmp"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
)

// pki names the files of the keys and certificates that a logical cluster generates once and keeps.
type pki struct {
	dir string
	// lifetime is that of leaf certificates; zero is leafLifetime.
	lifetime time.Duration
}

func (p pki) leafLifetime() time.Duration { return cmp.Or(p.lifetime, leafLifetime) }

// renewBefore is how long before its end a leaf certificate is replaced.
func (p pki) renewBefore() time.Duration { return p.leafLifetime() / 3 }

// Base names of the files in the pki folder, as kubeadm calls them.
const (
	authority           = "ca"
	servingCert         = "apiserver"
	adminCert           = "admin"
	frontProxyAuthority = "front-proxy-ca"
	frontProxyCert      = "front-proxy-client"
	serviceAccountKey   = "sa"
)

func (p pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }
func (p pki) pub(name string) string  { return filepath.Join(p.dir, name+".pub") }

// ensure makes what is missing and replaces leaf certificates that end soon or do not cover the names of altNames. Authorities and the
// service account key are never replaced: everything that was issued would become void.
func (p pki) ensure(now time.Time, altNames certutil.AltNames) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("make the pki directory: %w", err)
	}
	ca, caKey, err := p.ensureAuthority(authority, "manifold-ca", now)
	if err != nil {
		return err
	}
	proxyCA, proxyKey, err := p.ensureAuthority(frontProxyAuthority, "manifold-front-proxy-ca", now)
	if err != nil {
		return err
	}
	leaves := []struct {
		name      string
		authority *x509.Certificate
		key       crypto.Signer
		config    certutil.Config
	}{
		{servingCert, ca, caKey, certutil.Config{CommonName: "kube-apiserver", AltNames: altNames,
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}},
		// The group is not system:masters, which cannot be taken away by RBAC, but the one that kubeadm binds to cluster-admin.
		{adminCert, ca, caKey, certutil.Config{CommonName: "manifold-admin", Organization: []string{kubeadmAdminsGroup},
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}},
		{frontProxyCert, proxyCA, proxyKey, certutil.Config{CommonName: "front-proxy-client",
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}},
	}
	for _, leaf := range leaves {
		if err := p.ensureLeaf(leaf.name, leaf.authority, leaf.key, leaf.config, now); err != nil {
			return fmt.Errorf("certificate %s: %w", p.cert(leaf.name), err)
		}
	}
	return p.ensureServiceAccountKey()
}

func (p pki) ensureAuthority(name, commonName string, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	if pkiutil.CertOrKeyExist(p.dir, name) {
		cert, key, err := pkiutil.TryLoadCertAndKeyFromDisk(p.dir, name)
		if err != nil {
			return nil, nil, fmt.Errorf("certificate authority %s: %w", p.cert(name), err)
		}
		return cert, key, nil
	}
	cert, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config:              certutil.Config{CommonName: commonName},
		NotAfter:            now.Add(authorityLifetime),
		EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate authority %s: %w", commonName, err)
	}
	return cert, key, pkiutil.WriteCertAndKey(p.dir, name, cert, key)
}

func (p pki) ensureLeaf(name string, ca *x509.Certificate, caKey crypto.Signer, config certutil.Config, now time.Time) error {
	// A process that ended between the two writes has left a certificate without its key.
	_, unfit := tls.LoadX509KeyPair(p.cert(name), p.key(name))
	if cert, _, err := pkiutil.TryLoadCertAndKeyFromDisk(p.dir, name); err == nil && unfit == nil && p.leafServes(cert, ca, config, now) {
		return nil
	}
	cert, key, err := pkiutil.NewCertAndKey(ca, caKey, &pkiutil.CertConfig{
		Config:              config,
		NotAfter:            now.Add(p.leafLifetime()),
		EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256,
	})
	if err != nil {
		return err
	}
	return pkiutil.WriteCertAndKey(p.dir, name, cert, key)
}

// leafServes reports whether cert can go on serving: issued by ca, for all the names of config, and not about to end.
func (p pki) leafServes(cert, ca *x509.Certificate, config certutil.Config, now time.Time) bool {
	if cert.CheckSignatureFrom(ca) != nil || now.Add(p.renewBefore()).After(cert.NotAfter) {
		return false
	}
	for _, name := range config.AltNames.DNSNames {
		if cert.VerifyHostname(name) != nil {
			return false
		}
	}
	for _, ip := range config.AltNames.IPs {
		if cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

func (p pki) ensureServiceAccountKey() error {
	if pkiutil.CertOrKeyExist(p.dir, serviceAccountKey) {
		return nil
	}
	key, err := pkiutil.GeneratePrivateKey(kubeadmapi.EncryptionAlgorithmRSA2048)
	if err != nil {
		return fmt.Errorf("make the service account key: %w", err)
	}
	if err := pkiutil.WritePublicKey(p.dir, serviceAccountKey, key.Public()); err != nil {
		return err
	}
	return pkiutil.WriteKey(p.dir, serviceAccountKey, key)
}

// servingNames are the names that the serving certificate covers: what the stock server answers to inside a cluster, this host, and
// the addresses that it binds and advertises.
func servingNames(serviceIP net.IP, addresses ...net.IP) certutil.AltNames {
	names := certutil.AltNames{
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP},
	}
	if host, err := os.Hostname(); err == nil {
		names.DNSNames = append(names.DNSNames, host)
	}
	for _, ip := range addresses {
		if ip != nil && !ip.IsUnspecified() {
			names.IPs = append(names.IPs, ip)
		}
	}
	return names
}
