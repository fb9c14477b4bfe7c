package keys

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AdminsGroup is bound to cluster-admin at start; kubeadm uses the same name for the same purpose.
const AdminsGroup = "kubeadm:cluster-admins"

// LocalURL is how programs on this host reach a server that binds an address.
func LocalURL(host net.IP, port int) string {
	if host == nil || host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + net.JoinHostPort(host.String(), strconv.Itoa(port))
}

// WriteAdminKubeconfig writes a self-contained kubeconfig of the administrator to path, readable for the owner alone. What somebody has
// added to it, such as a namespace to work in, stays.
func (p Store) WriteAdminKubeconfig(path string, host net.IP, port int) error {
	ca, err := os.ReadFile(p.Cert(Authority))
	if err != nil {
		return fmt.Errorf("admin kubeconfig: %w", err)
	}
	cert, err := os.ReadFile(p.Cert(adminCert))
	if err != nil {
		return fmt.Errorf("admin kubeconfig: %w", err)
	}
	key, err := os.ReadFile(p.Key(adminCert))
	if err != nil {
		return fmt.Errorf("admin kubeconfig: %w", err)
	}
	const name = "manifold"
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		config = clientcmdapi.NewConfig()
		config.CurrentContext = name
	}
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   LocalURL(host, port),
		CertificateAuthorityData: ca,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	if config.Contexts[name] == nil {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the admin kubeconfig: %w", err)
	}
	return nil
}
