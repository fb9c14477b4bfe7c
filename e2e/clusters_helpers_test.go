package e2e

import (
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// kubeconfigWith writes a kubeconfig that leads where another one does, with a change.
func kubeconfigWith(t *testing.T, of string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(of)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// quick has the pods of a Deployment end at once. Kubernetes waits for half of the time that pods may take before it looks again at a
// namespace that is deleted.
func quick(manifest string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64) })
}
