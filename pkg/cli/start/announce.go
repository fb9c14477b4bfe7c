package start

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// readyInterval is how often the server is asked whether it is ready.
const readyInterval = 50 * time.Millisecond

// announce waits until the server is ready and prints what to do next. It returns when that is done or ctx ends.
func (o *Options) announce(ctx context.Context, kubeconfig string, begun time.Time) {
	var address string
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		var ready bool
		address, ready = probe(ctx, kubeconfig)
		return ready, nil
	})
	if err != nil {
		return // It stops before it was ready; Run says why.
	}
	fmt.Fprint(o.Out, greeting(address, kubeconfig, countClusters(ctx, kubeconfig), time.Since(begun)))
}

// probe asks the server that the kubeconfig leads to whether it is ready. The file may not be written yet, or be an older one.
func probe(ctx context.Context, kubeconfig string) (address string, ready bool) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", false
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", false
	}
	err = client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	return config.Host, err == nil
}

// countClusters counts the clusters that have joined. It only decides which hint is given, so not knowing is like none.
func countClusters(ctx context.Context, kubeconfig string) int {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return 0
	}
	list, err := client.ManifoldV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	return len(list.Items)
}

// greeting says where the server is and what to do next.
func greeting(address, kubeconfig string, clusters int, took time.Duration) string {
	next, what := "manifold cluster join NAME --cluster-kubeconfig FILE", "No cluster has joined yet. In another terminal:"
	if clusters > 0 {
		next, what = "manifold cluster list", "In another terminal:"
	}
	return fmt.Sprintf(`
Manifold %s is ready at %s after %.1fs.
%s

  export KUBECONFIG=%s
  %s

Ctrl-C stops it; what runs in the clusters goes on.

`, version.Get().GitVersion, address, took.Seconds(), what, kubeconfig, next)
}
