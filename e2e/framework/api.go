package framework

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// API is an API server as its administrator sees it: the logical cluster's or a physical one's.
type API struct {
	// Name is "logical" or the name of the cluster.
	Name string
	// Kubeconfig is the path of a self-contained kubeconfig.
	Kubeconfig string
	// Config is for further clients. None of the clients is throttled.
	Config   *rest.Config
	Kube     kubernetes.Interface
	Manifold versioned.Interface
	Dynamic  dynamic.Interface

	// kubectl is the stock program, manifold is ours, and cache the folder where kubectl keeps what it found out about the API.
	kubectl, manifold, cache string
}

func newAPI(name string, bin programs, kubeconfig string) (*API, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	config.UserAgent = "e2e"
	config.WarningHandler = rest.NoWarnings{}
	a := &API{Name: name, Kubeconfig: kubeconfig, Config: config,
		kubectl: bin.kubectl(), manifold: bin.manifold, cache: filepath.Join(filepath.Dir(kubeconfig), "kubectl-cache")}
	if a.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", name, err)
	}
	if a.Manifold, err = versioned.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", name, err)
	}
	if a.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", name, err)
	}
	return a, nil
}
