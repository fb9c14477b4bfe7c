package server

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// Nothing in the process is there once for all logical clusters: two of them run side by side, each with its own objects and credentials.
func TestTwoLogicalClustersRunInOneProcess(t *testing.T) {
	ctx := t.Context()
	var clients []kubernetes.Interface
	var configs []*rest.Config
	var kubeconfigs []string
	for _, name := range []string{"one", "other"} {
		client, config, kubeconfig := serve(t, name)
		clients, configs, kubeconfigs = append(clients, client), append(configs, config), append(kubeconfigs, kubeconfig)
	}
	one, other := clients[0].CoreV1(), clients[1].CoreV1()
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := one.Namespaces().Create(ctx, shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Namespaces().Get(ctx, "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other logical cluster answers %v about a namespace of the first, want that there is none", err)
	}
	system := func(client kubernetes.Interface) types.UID {
		ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ns.UID
	}
	if system(clients[0]) == system(clients[1]) {
		t.Error("both have one identity")
	}
	join(t, clients[0], configs[0], "below", kubeconfigs[1])
	ofOne := []string{"down-below", "pods-below", "volumes-below", "events-below", "custom-below"}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		queues := queuesInMetrics(t)
		return !slices.ContainsFunc(ofOne, func(queue string) bool { return !queues.Has("one-" + queue) }), nil
	})
	queues := queuesInMetrics(t)
	if err != nil {
		t.Errorf("the metrics do not tell of the queues %v of a cluster by the logical cluster that has it: %v", ofOne, sets.List(queues))
	}
	for _, queue := range ofOne {
		if queues.Has(queue) || queues.Has("other-"+queue) {
			t.Errorf("the metrics tell of a queue %s of somebody else: %v", queue, sets.List(queues))
		}
	}
	for _, queue := range []string{
		"placement", "placement_claims", "policies", "volumes", "summary", "removal", "drain", "clusters_connect", "clusters_status", "clusters_mirror", "custom", "quota-usage",
		"applications", "application-sources", "application-repositories", "releases", "release-logs", "notifications", "pushes",
	} {
		for _, name := range []string{"one", "other"} {
			if !queues.Has(name + "-" + queue) {
				t.Errorf("the metrics tell nothing of queue %s of the logical cluster %s alone: %v", queue, name, sets.List(queues))
			}
		}
	}
}

// serve runs a logical cluster until the test ends, and returns how its admin reaches it, once it is ready.
func serve(t *testing.T, name string) (kubernetes.Interface, *rest.Config, string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o := NewOptions()
	o.Name, o.DataDir = name, t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener, o.SecureServing.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	completed, err := o.Complete(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var running errgroup.Group
	t.Cleanup(func() {
		stop()
		if err := running.Wait(); err != nil {
			t.Errorf("a server ends with %v", err)
		}
	})
	started := make(chan struct{})
	ended := make(chan error, 1)
	running.Go(func() error {
		err := Run(ctx, completed, func() { close(started) })
		ended <- err
		return err
	})
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("the server does not start: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", completed.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // it is asked for whether it is ready more often than clients may ask by default
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// A server that is stopped before it has made its roles ends the whole process, so a slow machine gets its time.
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		t.Fatalf("the server does not become ready: %v", err)
	}
	return client, config, completed.AdminKubeconfig()
}

// join has a logical cluster know another one as a cluster, with the credential of its admin.
func join(t *testing.T, client kubernetes.Interface, config *rest.Config, name, kubeconfig string) {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Secrets(v1alpha1.SystemNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + name}, Data: map[string][]byte{"kubeconfig": content},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = own.ManifoldV1alpha1().Clusters().Create(t.Context(), &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ClusterSpec{Connection: v1alpha1.ClusterConnection{SecretRef: &v1alpha1.SecretReference{Namespace: v1alpha1.SystemNamespace, Name: "cluster-" + name}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// queuesInMetrics returns the names of the work queues that the metrics of the process tell of.
func queuesInMetrics(t *testing.T) sets.Set[string] {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := sets.New[string]()
	for _, family := range families {
		if family.GetName() != "workqueue_depth" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "name" {
					out.Insert(label.GetValue())
				}
			}
		}
	}
	return out
}
