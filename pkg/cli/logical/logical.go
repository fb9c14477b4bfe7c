// Package logical finds the logical cluster that commands are about.
package logical

import (
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// Config returns the namespace that flags and kubeconfig name, and how the logical cluster is reached.
func Config(f cmdutil.Factory) (namespace string, config *rest.Config, err error) {
	if namespace, _, err = f.ToRawKubeConfigLoader().Namespace(); err != nil {
		return "", nil, err
	}
	config, err = f.ToRESTConfig()
	return namespace, config, err
}

// Typed returns the namespace, and a client for the kinds of Manifold.
func Typed(f cmdutil.Factory) (namespace string, client versioned.Interface, err error) {
	namespace, config, err := Config(f)
	if err != nil {
		return "", nil, err
	}
	client, err = versioned.NewForConfig(config)
	return namespace, client, err
}

// Dynamic returns the namespace, and a client for any kind.
func Dynamic(f cmdutil.Factory) (namespace string, client dynamic.Interface, err error) {
	namespace, config, err := Config(f)
	if err != nil {
		return "", nil, err
	}
	client, err = dynamic.NewForConfig(config)
	return namespace, client, err
}
