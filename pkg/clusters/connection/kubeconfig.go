package connection

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ParseKubeconfig reads the current context of a kubeconfig that came through the API, as the credential of a cluster does.
//
// Such a kubeconfig is data from whoever may write the Secret, while it is used with the rights of this process. So it must stand for
// itself: one that would run a program, read a local file, or talk without verified TLS is refused. The result is put together field
// by field, for the same reason: what is not named here has no effect.
func ParseKubeconfig(data []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig does not parse: %w", err)
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no context %q, which it says is the current one", config.CurrentContext)
	}
	cluster, ok := config.Clusters[context.Cluster]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no cluster %q, which its current context names", context.Cluster)
	}
	user, ok := config.AuthInfos[context.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no user %q, which its current context names", context.AuthInfo)
	}
	if err := errors.Join(checkCluster(cluster), checkUser(user)); err != nil {
		return nil, err
	}
	return restConfig(cluster, user)
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil:
		return fmt.Errorf("the kubeconfig's server is not a URL: %w", err)
	case server.Scheme != "https" || server.Host == "":
		return fmt.Errorf("the kubeconfig's server %q is not an https URL", cluster.Server)
	case cluster.InsecureSkipTLSVerify:
		return errors.New("the kubeconfig sets insecure-skip-tls-verify; give the CA in certificate-authority-data instead")
	case cluster.CertificateAuthority != "":
		return errors.New("the kubeconfig names the file certificate-authority; give its content in certificate-authority-data")
	}
	return nil
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("the kubeconfig's user runs a program (exec); give a token or a client certificate instead")
	case user.AuthProvider != nil:
		return errors.New("the kubeconfig's user has an auth-provider; give a token or a client certificate instead")
	case user.TokenFile != "":
		return errors.New("the kubeconfig's user names a tokenFile; give its content in token")
	case user.ClientCertificate != "" || user.ClientKey != "":
		return errors.New("the kubeconfig's user names files for client-certificate or client-key; " +
			"give their content in client-certificate-data and client-key-data")
	case user.Username != "" || user.Password != "":
		return errors.New("the kubeconfig's user has a password, which Kubernetes no longer accepts; give a token")
	case user.Token == "" && len(user.ClientCertificateData) == 0:
		return errors.New("the kubeconfig's user has neither a token nor a client certificate")
	}
	return nil
}

func restConfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (*rest.Config, error) {
	config := &rest.Config{
		Host:               cluster.Server,
		BearerToken:        user.Token,
		DisableCompression: cluster.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:     cluster.CertificateAuthorityData,
			ServerName: cluster.TLSServerName,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate,
			UID:      user.ImpersonateUID,
			Groups:   user.ImpersonateGroups,
			Extra:    user.ImpersonateUserExtra,
		},
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig's proxy-url is not a URL: %w", err)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	return config, nil
}
