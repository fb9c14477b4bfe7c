package stock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/kubelet"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// TestCluster walks one cluster through its life.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := startCluster(ctx, t)
	pod := runDeployment(ctx, t, c)

	t.Run("exec reports how the command ended", func(t *testing.T) {
		out, err := kubectl(ctx, c, "", "exec", pod, "--", "sh", "-c", "echo $HOSTNAME $CLUSTER; exit 3")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("kubectl exec: %v, want exit status 3\n%s", err, out)
		}
		if want := pod + " east\n"; !strings.HasPrefix(out, want) {
			t.Errorf("kubectl exec printed %q, want %q first", out, want)
		}
	})
	t.Run("exec ends when its input does", func(t *testing.T) {
		if out, err := kubectl(ctx, c, "hello", "exec", "-i", pod, "--", "cat"); err != nil || out != "hello" {
			t.Errorf("kubectl exec printed %q, %v", out, err)
		}
	})
	t.Run("what is attached to a container goes to its log", func(t *testing.T) {
		if out, err := kubectl(ctx, c, "hello\n", "attach", "-i", "-q", pod); err != nil || out != "hello\n" {
			t.Errorf("kubectl attach printed %q, %v", out, err)
		}
		if out, err := kubectl(ctx, c, "", "logs", "--tail=1", pod); err != nil || out != "hello\n" {
			t.Errorf("kubectl logs printed %q, %v", out, err)
		}
	})
	t.Run("metrics-server tells what a pod is said to use", func(t *testing.T) {
		if out, err := kubectl(ctx, c, "", "annotate", "pod", pod, kubelet.AnnotationCPU+"=1500m", kubelet.AnnotationMemory+"=300Mi"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var out string
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
			out, _ = kubectl(ctx, c, "", "top", "pod", pod, "--no-headers")
			return strings.Join(strings.Fields(out), " ") == pod+" 1500m 300Mi", nil
		})
		if err != nil {
			t.Errorf("kubectl top printed %q", out)
		}
		if out, err := kubectl(ctx, c, "", "top", "nodes"); err != nil || !strings.Contains(out, "east-2") {
			t.Errorf("kubectl top printed %q, %v", out, err)
		}
	})
	t.Run("nobody but the API server may use the kubelet endpoints", func(t *testing.T) {
		node, err := c.Client().CoreV1().Nodes().Get(ctx, "east-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
		response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/containerLogs/default/%s/web", port, pod))
		if err == nil {
			response.Body.Close()
			t.Errorf("an administrator got %s straight from the kubelet, want a refused certificate", response.Status)
		}
	})
	t.Run("an API server that was killed comes back with its data", func(t *testing.T) {
		if err := c.Kill(stock.APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().Discovery().ServerVersion(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("ask the killed server: %v, want a refused connection", err)
		}
		if err := c.Restart(ctx, stock.APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a paused API server answers once it is resumed", func(t *testing.T) {
		if err := c.Pause(stock.APIServer); err != nil {
			t.Fatal(err)
		}
		// A signal takes a moment to reach all threads.
		for answered := true; answered && ctx.Err() == nil; {
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			_, err := c.Client().CoreV1().Pods("default").Get(short, pod, metav1.GetOptions{})
			cancel()
			answered = !errors.Is(err, context.DeadlineExceeded)
		}
		if ctx.Err() != nil {
			t.Fatal("the paused server goes on answering")
		}
		if err := c.Resume(stock.APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a restarted kwok goes on at once", func(t *testing.T) {
		if err := c.Restart(ctx, stock.Kwok); err != nil {
			t.Fatal(err)
		}
		if out, err := kubectl(ctx, c, "", "delete", "pod", pod, "--timeout=20s"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("no second cluster starts in its folder", func(t *testing.T) {
		_, err := stock.Start(ctx, stock.Options{Name: "other", Dir: c.Dir(), BinDir: "unused"})
		if err == nil || !strings.Contains(err.Error(), c.Dir()+" is in use") {
			t.Errorf("Start() error = %v, want one that names the folder", err)
		}
	})
	t.Run("every component has a usage", func(t *testing.T) {
		usage, err := c.Usage()
		if err != nil {
			t.Fatal(err)
		}
		for _, component := range c.Components() {
			if usage[component].RSS == 0 {
				t.Errorf("%s takes no memory", component)
			}
		}
	})
	t.Run("nothing can be started in a stopped cluster", func(t *testing.T) {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(ctx, stock.Etcd); err == nil {
			t.Error("etcd was restarted")
		}
	})
}

func startCluster(ctx context.Context, t *testing.T) *stock.Cluster {
	t.Helper()
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := tools.Build(ctx, root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stock.Start(ctx, stock.Options{Name: "east", Dir: filepath.Join(t.TempDir(), "east"), BinDir: bin, Metrics: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// runDeployment makes a Deployment, waits until it is available, and returns the name of its pod.
func runDeployment(ctx context.Context, t *testing.T, c *stock.Cluster) string {
	t.Helper()
	labels := map[string]string{"app": "web"}
	deployments := c.Client().AppsV1().Deployments("default")
	_, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := cache.NewListWatchFromClient(c.Client().AppsV1().RESTClient(), "deployments", "default", fields.Everything())
	_, err = watchtools.UntilWithSync(ctx, list, &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		d, ok := event.Object.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas == 1, nil
	})
	if err != nil {
		t.Fatalf("wait until the deployment is available: %v", err)
	}
	pods, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("list the deployment's pods: %v, %d found", err, len(pods.Items))
	}
	return pods.Items[0].Name
}

// kubectl runs the stock kubectl against the cluster and returns what it printed.
func kubectl(ctx context.Context, c *stock.Cluster, stdin string, args ...string) (string, error) {
	root, err := tools.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(tools.BinDir(root), tools.Kubectl), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
