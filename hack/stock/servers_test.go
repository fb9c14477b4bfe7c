package stock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// bakery is an application that listens, and a database whose pods have names.
const bakery = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 3
      containers: [{name: web, image: "web:v1", ports: [{name: http, containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {kwok.x-k8s.io/drain: 0s}}
    spec:
      containers: [{name: db, image: "db:v1", ports: [{containerPort: 5432}]}]
`

// TestPodsAreServers walks the pods of one cluster through their lives, and asks them all the time.
func TestPodsAreServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := startServers(ctx, t)
	run := func(args ...string) {
		t.Helper()
		if out, err := kubectl(ctx, c, bakery, args...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	run("apply", "-f", "-")
	run("rollout", "status", "deployment/web", "statefulset/db", "--timeout=1m")
	network, err := datapath.Start(ctx, datapath.Options{Members: []datapath.Member{datapath.Of(c)}})
	if err != nil {
		t.Fatal(err)
	}
	defer network.Stop()
	client, err := network.Client(datapath.From{Cluster: "east", Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	until := func(claim string, check func() error) {
		t.Helper()
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
		if err != nil {
			t.Fatalf("%s: not so: %v", claim, last)
		}
	}
	ask := func(url string) (pods.Answer, error) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return client.Ask(short, url)
	}
	until("the Service is reached", func() error {
		_, err := ask("http://web/")
		return err
	})

	t.Run("a rollout loses no request", func(t *testing.T) {
		stream := load.Start(load.Options{URL: "http://web", Dial: client.DialContext, Timeout: 20 * time.Second, Expect: func(a pods.Answer) error {
			if a.App != "web" || a.Cluster != "east" {
				return fmt.Errorf("answered by %s in %s", a.Pod, a.Cluster)
			}
			return nil
		}})
		run("set", "image", "deployment/web", "web=web:v2")
		run("rollout", "status", "deployment/web", "--timeout=1m")
		run("scale", "deployment/web", "--replicas=1")
		until("one pod is left", func() error {
			out, err := kubectl(ctx, c, "", "get", "pods", "-l", "app=web", "-o", "name")
			if err == nil && strings.Count(out, "\n") != 1 {
				err = errors.New(out)
			}
			return err
		})
		report := stream.Stop()
		t.Log(report)
		if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 || report.Versions["v2"] == 0 {
			t.Errorf("%s: want all answered, by both versions", report)
		}
	})
	t.Run("pods of a StatefulSet have names", func(t *testing.T) {
		for _, name := range []string{"db-0", "db-1"} {
			if answer, err := ask("http://" + name + ".db:5432/"); err != nil || answer.Pod != name {
				t.Errorf("%s.db is answered by %+v, %v", name, answer, err)
			}
		}
	})
	t.Run("the API server reaches pods too", func(t *testing.T) {
		out, err := kubectl(ctx, c, "", "get", "--raw", "/api/v1/namespaces/default/services/web/proxy/a")
		if err != nil || !strings.Contains(out, `"path":"/a"`) {
			t.Errorf("the proxy of the Service answers %q, %v", out, err)
		}
	})
	t.Run("a pod that is not ready is left out", func(t *testing.T) {
		run("annotate", "pod", "db-1", pods.AnnotationUnready+"=true")
		until("its name is gone", func() error {
			if _, err := ask("http://db-1.db:5432/"); err == nil {
				return errors.New("it answers")
			}
			return nil
		})
		run("annotate", "pod", "db-1", pods.AnnotationUnready+"-")
		until("its name is back", func() error {
			_, err := ask("http://db-1.db:5432/")
			return err
		})
	})
	t.Run("pods go on without the API server", func(t *testing.T) {
		if err := c.Kill(stock.APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := ask("http://web/"); err != nil {
			t.Error(err)
		}
		if err := c.Restart(ctx, stock.APIServer); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a lost cluster is silent until it is back", func(t *testing.T) {
		if err := c.PauseAll(); err != nil {
			t.Fatal(err)
		}
		if answer, err := ask("http://web/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered by %+v, %v, want silence", answer, err)
		}
		if err := c.ResumeAll(); err != nil {
			t.Fatal(err)
		}
		if _, err := ask("http://web/"); err != nil {
			t.Error(err)
		}
	})
	t.Run("what is deleted is gone in the end", func(t *testing.T) {
		run("delete", "deployment/web", "statefulset/db", "--cascade=foreground", "--timeout=1m")
	})
}

// startServers starts a cluster whose pods are servers.
func startServers(ctx context.Context, t *testing.T) *stock.Cluster {
	t.Helper()
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, _, err := tools.BuildWithoutMetrics(ctx, root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stock.Start(ctx, stock.Options{Name: "east", Dir: filepath.Join(t.TempDir(), "east"), BinDir: bin, Servers: true, Progress: os.Stderr})
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
