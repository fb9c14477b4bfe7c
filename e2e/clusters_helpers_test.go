package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// join joins a cluster and returns the arguments of the command. When the test ends, the cluster is removed with everything that joining
// made there.
func join(s *framework.Scenario, name string, further ...string) []string {
	s.Helper()
	kubeconfig := s.Environment.Clusters[name].Kubeconfig()
	s.Cleanup(func() { dismiss(s, name) })
	args := append([]string{"cluster", "join", name, "--cluster-kubeconfig", kubeconfig}, further...)
	s.Logical.CLI(args...)
	return args
}

// dismiss removes a cluster and what is left in it when a test is over, whatever came of it.
func dismiss(s *framework.Scenario, name string) {
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
	selectors := []string{v1alpha1.LabelLogicalCluster, managed}
	for _, f := range ours(ctx, s.T, below, selectors...) {
		if err := f.delete(ctx, below); err != nil && !apierrors.IsNotFound(err) {
			s.Logf("clean up %s: %v", f, err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return len(ours(ctx, s.T, below, selectors...)) == 0, nil
	})
	if err != nil {
		s.Errorf("clean up cluster %q: %v", name, err)
	}
}

// managed selects what joining makes in a cluster.
const managed = "app.kubernetes.io/managed-by=manifold"

// owned selects what a logical cluster owns in its clusters.
func owned(s *framework.Scenario) string {
	s.Helper()
	return v1alpha1.LabelLogicalCluster + "=" + framework.IdentityOf(s.T, s.Environment)
}

// found is an object that was found in a cluster.
type found struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
	version         string
}

func (f found) String() string {
	return strings.TrimPrefix(f.resource.Resource+" "+f.namespace+"/"+f.name, "/")
}

func (f found) delete(ctx context.Context, a *framework.API) error {
	return a.Dynamic.Resource(f.resource).Namespace(f.namespace).Delete(ctx, f.name, metav1.DeleteOptions{})
}

// ours lists the objects of every kind that a cluster serves and that one of the label selectors selects.
func ours(ctx context.Context, t *testing.T, a *framework.API, selectors ...string) []found {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(a.Kube.Discovery())
	if err != nil {
		t.Fatalf("ask %s what it serves: %v", a.Name, err)
	}
	var out []found
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, r := range list.APIResources {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			resource := group.WithResource(r.Name)
			for _, selector := range selectors {
				items, err := a.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
				if err != nil {
					t.Fatalf("list the %s of %s: %v", r.Name, a.Name, err)
				}
				for _, o := range items.Items {
					out = append(out, found{resource, o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b found) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// inNamespace keeps what is in the namespace, and the namespace itself.
func inNamespace(all []found, namespace string) []found {
	return slices.DeleteFunc(all, func(f found) bool {
		return f.namespace != namespace && !(f.resource.Resource == "namespaces" && f.name == namespace)
	})
}

// awaitNothing waits until a cluster has none of what the selectors select.
func awaitNothing(s *framework.Scenario, side *framework.Side, selectors ...string) {
	s.Helper()
	side.Poll(fmt.Sprintf("nothing is left of what %q select", selectors), func() error {
		if left := ours(side.Context(), s.T, side.API, selectors...); len(left) > 0 {
			return fmt.Errorf("there are still: %v", left)
		}
		return nil
	})
}

// clusterNow reads a Cluster.
func clusterNow(s *framework.Scenario, name string) *v1alpha1.Cluster {
	s.Helper()
	c, err := s.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// readiness claims what the Ready condition of a Cluster is.
func readiness(want metav1.ConditionStatus) func(*v1alpha1.Cluster) bool {
	return func(c *v1alpha1.Cluster) bool {
		return meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, v1alpha1.ClusterReady, want)
	}
}

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

// stored writes the credential that the logical cluster keeps of a cluster to a file.
func stored(s *framework.Scenario, cluster string) string {
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

// marks returns the names of Manifold's own that an object carries.
func marks(o metav1.Object) []string {
	var out []string
	for _, in := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(in)) {
			if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
				out = append(out, key)
			}
		}
	}
	return out
}

// bystander is somebody else's object in a cluster, as it was when it was made.
type bystander struct {
	side *framework.Side
	was  *unstructured.Unstructured
}

// bystanders makes things in a cluster that have nothing to do with Manifold: in a namespace of their own, and in one of the scenario's.
func bystanders(s *framework.Scenario, side *framework.Side) (check func()) {
	s.Helper()
	foreign := "foreign-" + s.Namespace
	side.Kubectl("create", "namespace", foreign)
	s.Cleanup(func() {
		for _, namespace := range []string{foreign, s.Namespace} {
			s.Environment.CleanupIn(s.T, side.API, "delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
		}
	})
	var all []bystander
	for _, namespace := range []string{foreign, s.Namespace} {
		side := side.In(namespace)
		side.KubectlInput(manifests.Deployment("bystander", 1), "create", "-f", "-")
		side.Kubectl("create", "configmap", "bystander", "--from-literal=color=red")
		side.Kubectl("create", "serviceaccount", "bystander")
		framework.Await(side, "bystander", "runs", expect.Available(1))
		for _, resource := range []schema.GroupVersionResource{
			appsv1.SchemeGroupVersion.WithResource("deployments"),
			corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
		} {
			o, err := side.Dynamic.Resource(resource).Namespace(namespace).Get(s.Context(), "bystander", metav1.GetOptions{})
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, bystander{side: side, was: o})
		}
	}
	return func() {
		s.Helper()
		for _, b := range all {
			if err := b.changed(s.Context()); err != nil {
				s.Error(err)
			}
		}
	}
}

func (b bystander) changed(ctx context.Context) error {
	resource, _ := meta.UnsafeGuessKindToResource(b.was.GroupVersionKind())
	now, err := b.side.Dynamic.Resource(resource).Namespace(b.was.GetNamespace()).Get(ctx, b.was.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("somebody else's object: %w", err)
	}
	if now.GetUID() != b.was.GetUID() || now.GetResourceVersion() != b.was.GetResourceVersion() {
		return errors.New("somebody else's object was changed: " + fmt.Sprint(now))
	}
	return nil
}

// quick has the pods of a Deployment end at once. Kubernetes waits for half of the time that pods may take before it looks again at a
// namespace that is deleted.
func quick(manifest string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64) })
}
