package membership

import (
	"context"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// Join joins a cluster and returns the arguments of the command. When the test ends, the cluster is removed with everything that joining
// made there.
func Join(s *framework.Scenario, name string, further ...string) []string {
	s.Helper()
	kubeconfig := s.Environment.Clusters[name].Kubeconfig()
	s.Cleanup(func() { Dismiss(s, name) })
	args := append([]string{"cluster", "join", name, "--cluster-kubeconfig", kubeconfig}, further...)
	s.Logical.CLI(args...)
	return args
}

// Dismiss removes a cluster and what is left in it when a test is over, whatever came of it.
func Dismiss(s *framework.Scenario, name string) {
	s.Helper()
	// The test's own context has ended.
	ctx, cancel := framework.AfterTest()
	defer cancel()
	clusters := s.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters()
	if _, err := clusters.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Environment.Cleanup(s.T, "annotate", "cluster", name, v1alpha1.AnnotationRemove+"="+v1alpha1.RemoveForce, "--overwrite")
		s.Environment.Cleanup(s.T, "delete", "cluster", name, "--timeout=60s")
	}
	below := s.Environment.Physical[name]
	selectors := []string{v1alpha1.LabelLogicalCluster, Managed}
	for _, f := range Objects(ctx, s.T, below, selectors...) {
		if err := f.delete(ctx, below); err != nil && !apierrors.IsNotFound(err) {
			s.Logf("clean up %s: %v", f, err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return len(Objects(ctx, s.T, below, selectors...)) == 0, nil
	})
	if err != nil {
		s.Errorf("clean up cluster %q: %v", name, err)
	}
}

// Get reads a Cluster.
func Get(s *framework.Scenario, name string) *v1alpha1.Cluster {
	s.Helper()
	c, err := s.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// Readiness claims what the Ready condition of a Cluster is.
func Readiness(want metav1.ConditionStatus) func(*v1alpha1.Cluster) bool {
	return func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, v1alpha1.ClusterReady, want)
	}
}

// StoredCredential writes the credential that the logical cluster keeps of a cluster to a file.
func StoredCredential(s *framework.Scenario, cluster string) string {
	s.Helper()
	secret, err := s.Logical.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(s.Context(), "cluster-"+cluster, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "stored.kubeconfig")
	if err := os.WriteFile(file, secret.Data["kubeconfig"], 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}
