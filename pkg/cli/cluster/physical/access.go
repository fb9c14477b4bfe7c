package physical

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/manifold-dev/manifold/internal/redirects"
)

// access is the way to a cluster that a kubeconfig file describes.
type access struct {
	// file and context say where it was read, for messages.
	file, context string
	// kubeconfig holds the one context, its cluster and its user, with every file that it names inlined.
	kubeconfig *clientcmdapi.Config
	// rest is the same for client-go, without a limit of its own on requests.
	rest *rest.Config
}

// loadAccess reads the context of that name, or the current one if the name is empty, from a kubeconfig file. Its errors name the
// file, and the contexts there are when the choice is wrong.
func loadAccess(file, context string) (access, error) {
	config, err := clientcmd.LoadFromFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return access{}, fmt.Errorf("there is no kubeconfig %q", file)
	case err != nil:
		return access{}, fmt.Errorf("kubeconfig %q does not parse: %w", file, err)
	}
	if config.CurrentContext, err = chooseContext(config, file, context); err != nil {
		return access{}, err
	}
	a := access{file: file, context: config.CurrentContext, kubeconfig: config}
	if err := selfContained(config); err != nil {
		return access{}, fmt.Errorf("%s: %w", a, err)
	}
	a.rest, err = restConfig(config)
	if err != nil {
		return access{}, fmt.Errorf("%s: %w", a, err)
	}
	return a, nil
}

// String says where the access was read.
func (a access) String() string {
	return fmt.Sprintf("kubeconfig %q, context %q", a.file, a.context)
}

func chooseContext(config *clientcmdapi.Config, file, name string) (string, error) {
	contexts := strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
	switch {
	case contexts == "":
		return "", fmt.Errorf("kubeconfig %q has no contexts, so it names no cluster", file)
	case name == "" && config.CurrentContext == "":
		return "", fmt.Errorf("kubeconfig %q has no current context; choose one with --cluster-context: %s", file, contexts)
	case name == "":
		name = config.CurrentContext
	}
	if config.Contexts[name] == nil {
		return "", fmt.Errorf("kubeconfig %q has no context %q; it has: %s", file, name, contexts)
	}
	return name, nil
}

// selfContained drops everything that the current context does not use from config and inlines the files that it names.
func selfContained(config *clientcmdapi.Config) error {
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return err
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return err
	}
	return clientcmdapi.FlattenConfig(config)
}

func restConfig(config *clientcmdapi.Config) (*rest.Config, error) {
	c, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	c.QPS, c.Burst = -1, 0
	// A server that is slow with one answer is not hung; the steps bound themselves by their contexts.
	c.Timeout = 0
	c.Wrap(redirects.Refuse)
	return c, nil
}

// withToken returns a kubeconfig for the same cluster, reached the same way, as the bearer of a token. Nothing of the user who
// joins is left in it.
func (a access) withToken(cluster, user, token string) *clientcmdapi.Config {
	server := a.kubeconfig.Clusters[a.kubeconfig.Contexts[a.context].Cluster].DeepCopy()
	server.LocationOfOrigin, server.Extensions = "", nil

	out := clientcmdapi.NewConfig()
	out.Clusters[cluster] = server
	out.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	out.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	out.CurrentContext = cluster
	return out
}
