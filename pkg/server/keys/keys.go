// Package keys makes, keeps and renews the keys and certificates of a logical cluster in its data directory: those that its API server needs,
// the administrator's, and the one that Secrets are encrypted with.
package keys

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

// Store names the files of the keys and certificates that a logical cluster generates once and keeps.
type Store struct {
	Dir string
	// lifetime is that of leaf certificates; zero is leafLifetime.
	lifetime time.Duration
}

func (p Store) leafLifetime() time.Duration { return cmp.Or(p.lifetime, leafLifetime) }

// renewBefore is how long before its end a leaf certificate is replaced.
func (p Store) renewBefore() time.Duration { return p.leafLifetime() / 3 }

// Base names of the files in the pki folder, as kubeadm calls them.
const (
	Authority           = "ca"
	ServingCert         = "apiserver"
	adminCert           = "admin"
	FrontProxyAuthority = "front-proxy-ca"
	FrontProxyCert      = "front-proxy-client"
	ServiceAccountKey   = "sa"
)

func (p Store) Cert(name string) string { return filepath.Join(p.Dir, name+".crt") }
func (p Store) Key(name string) string  { return filepath.Join(p.Dir, name+".key") }
func (p Store) Pub(name string) string  { return filepath.Join(p.Dir, name+".pub") }

// Ensure makes what is missing and replaces leaf certificates that end soon or do not cover the names of altNames. Authorities and the
// service account key are never replaced: everything that was issued would become void.
func (p Store) Ensure(now time.Time, altNames certutil.AltNames) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("make the pki directory: %w", err)
	}
	ca, caKey, err := p.ensureAuthority(Authority, "manifold-ca", now)
	if err != nil {
		return err
	}
	proxyCA, proxyKey, err := p.ensureAuthority(FrontProxyAuthority, "manifold-front-proxy-ca", now)
	if err != nil {
		return err
	}
	leaves := []struct {
		name      string
		authority *x509.Certificate
		key       crypto.Signer
		config    certutil.Config
	}{
		{ServingCert, ca, caKey, certutil.Config{CommonName: "kube-apiserver", AltNames: altNames,
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}},
		// The group is not system:masters, which cannot be taken away by RBAC, but the one that kubeadm binds to cluster-admin.
		{adminCert, ca, caKey, certutil.Config{CommonName: "manifold-admin", Organization: []string{AdminsGroup},
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}},
		{FrontProxyCert, proxyCA, proxyKey, certutil.Config{CommonName: "front-proxy-client",
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}},
	}
	for _, leaf := range leaves {
		if err := p.ensureLeaf(leaf.name, leaf.authority, leaf.key, leaf.config, now); err != nil {
			return fmt.Errorf("certificate %s: %w", p.Cert(leaf.name), err)
		}
	}
	return p.ensureServiceAccountKey()
}

func (p Store) ensureAuthority(name, commonName string, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	if pkiutil.CertOrKeyExist(p.Dir, name) {
		cert, key, err := pkiutil.TryLoadCertAndKeyFromDisk(p.Dir, name)
		if err != nil {
			return nil, nil, fmt.Errorf("certificate authority %s: %w", p.Cert(name), err)
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
	return cert, key, pkiutil.WriteCertAndKey(p.Dir, name, cert, key)
}

func (p Store) ensureLeaf(name string, ca *x509.Certificate, caKey crypto.Signer, config certutil.Config, now time.Time) error {
	// A process that ended between the two writes has left a certificate without its key.
	_, unfit := tls.LoadX509KeyPair(p.Cert(name), p.Key(name))
	if cert, _, err := pkiutil.TryLoadCertAndKeyFromDisk(p.Dir, name); err == nil && unfit == nil && p.leafServes(cert, ca, config, now) {
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
	return pkiutil.WriteCertAndKey(p.Dir, name, cert, key)
}

// leafServes reports whether cert can go on serving: issued by ca, for all the names of config, and not about to end.
func (p Store) leafServes(cert, ca *x509.Certificate, config certutil.Config, now time.Time) bool {
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

func (p Store) ensureServiceAccountKey() error {
	if pkiutil.CertOrKeyExist(p.Dir, ServiceAccountKey) {
		return nil
	}
	key, err := pkiutil.GeneratePrivateKey(kubeadmapi.EncryptionAlgorithmRSA2048)
	if err != nil {
		return fmt.Errorf("make the service account key: %w", err)
	}
	if err := pkiutil.WritePublicKey(p.Dir, ServiceAccountKey, key.Public()); err != nil {
		return err
	}
	return pkiutil.WriteKey(p.Dir, ServiceAccountKey, key)
}

// ServingNames are the names that the serving certificate covers: what the stock server answers to inside a cluster, this host, and
// the addresses that it binds and advertises.
func ServingNames(serviceIP net.IP, addresses ...net.IP) certutil.AltNames {
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
