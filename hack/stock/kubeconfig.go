package stock

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a self-contained kubeconfig that reaches the server as the user whose certificate has the given name.
func writeKubeconfig(file, cluster, server string, keys *pki, user string) error {
	config := clientcmdapi.NewConfig()
	contents := map[string][]byte{keys.cert("ca"): nil, keys.cert(user): nil, keys.key(user): nil}
	for path := range contents {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read what goes into kubeconfig %s: %w", file, err)
		}
		contents[path] = raw
	}
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: contents[keys.cert("ca")]}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: contents[keys.cert(user)],
		ClientKeyData:         contents[keys.key(user)],
	}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", file, err)
	}
	return nil
}
