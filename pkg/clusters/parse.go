package clusters

import "k8s.io/client-go/rest"

// ParseKubeconfig reads the kubeconfig of a credential that is stored in the logical cluster, with everything that the server refuses in one.
func ParseKubeconfig(data []byte) (*rest.Config, error) { return parseKubeconfig(data) }
