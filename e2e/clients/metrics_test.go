package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/kubelet"
)

// scraped is how long it may take until usage is told: metrics-server needs two scrapes, 10 s apart, and autoscaling looks every 15 s.
const scraped = 3 * time.Minute

// use makes each container of the selected pods in a cluster use this much from now on.
func use(s *framework.Scenario, side *framework.Side, selector, cpu, memory string) {
	s.Helper()
	side.Kubectl("annotate", "pods", "-l", selector, "--overwrite", kubelet.AnnotationCPU+"="+cpu, kubelet.AnnotationMemory+"="+memory)
}

// top returns the rows of a "kubectl top" without headers, with one blank between columns.
func top(side *framework.Side, args ...string) ([]string, error) {
	result := side.Try(slices.Concat([]string{"top"}, args, []string{"--no-headers"})...)
	var rows []string
	for line := range strings.Lines(result.Stdout) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows, framework.Failure(result)
}

// awaitTop waits until a "kubectl top" has rows that begin and end like this.
func awaitTop(side *framework.Side, want [][2]string, args ...string) {
	side.Within(scraped).Poll("kubectl top "+strings.Join(args, " "), func() error {
		rows, err := top(side, args...)
		if err != nil {
			return err
		}
		fits := func(row string, want [2]string) bool {
			return strings.HasPrefix(row, want[0]) && strings.HasSuffix(row, want[1])
		}
		if !slices.EqualFunc(rows, want, fits) {
			return fmt.Errorf("rows %q, want %q", rows, want)
		}
		return nil
	})
}

func TestTopShowsWhatPodsUseInEveryCluster(t *testing.T) {
	s := suite.Scenario(t)
	twoContainers := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
	}
	s.Logical.Apply(manifests.Edited(manifests.Pinned(manifests.Deployment("east", 2), "east"), twoContainers), manifests.Pinned(manifests.Deployment("west", 1), "west"))
	expect.RolledOut(s, "east", 2)
	expect.RolledOut(s, "west", 1)
	s.East.Kubectl("run", "stranger", "--image=stranger:1", "--labels=app=east")
	use(s, s.East, "app=east", "100m", "70Mi")
	use(s, s.West, "app=west", "350m", "30Mi")
	// The stranger is told of where it belongs.
	awaitTop(s.East, [][2]string{{"stranger", " 100m 70Mi"}}, "pod", "-l", "run!=x", "--field-selector=metadata.name=stranger")

	awaitTop(s.Logical, [][2]string{{"west-", " 350m 30Mi"}, {"east-", " 200m 140Mi"}, {"east-", " 200m 140Mi"}}, "pods", "--sort-by=cpu")
	awaitTop(s.Logical, [][2]string{{"east-", " 200m 140Mi"}, {"east-", " 200m 140Mi"}, {"west-", " 350m 30Mi"}}, "pods", "--sort-by=memory")
	awaitTop(s.Logical, [][2]string{{"west-", " 350m 30Mi"}}, "pods", "-l", "app=west")
	awaitTop(s.Logical, [][2]string{{"east-", " 200m 140Mi"}, {"east-", " 200m 140Mi"}}, "pods", "-l", "app=east,pod-template-hash")
	awaitTop(s.Logical, [][2]string{{"west-", " web 350m 30Mi"}}, "pods", "--containers", "-l", "app=west")

	pod := framework.AwaitList(s.Logical, "app=west", "there is one pod", expect.ReadyPods(1))[0].Name
	awaitTop(s.Logical, [][2]string{{pod, " 350m 30Mi"}}, "pod", pod)
	expect.Refused(t, s.Logical.Try("top", "pod", "stranger"), "not found")
	expect.Says(t, s.Logical.Kubectl("top", "pods", "-l", "app=east", "--containers"), "POD", "NAME", "CPU(cores)", "proxy", "web")
	expect.Says(t, s.Logical.Kubectl("top", "pods", "-A"), s.Namespace, pod)
	if r := s.Logical.Try("top", "pods", "-l", "app=nobody"); r.Code != 0 || !strings.Contains(r.Stderr, "No resources found") {
		t.Errorf("pods that do not exist: %s", r)
	}
	for _, cluster := range []string{"east", "west"} {
		s.Logical.Within(scraped).Poll("a node stands for what its cluster uses", func() error {
			rows, err := top(s.Logical, "node", cluster)
			if err == nil && (len(rows) != 1 || !strings.HasPrefix(rows[0], cluster+" ") || strings.Contains(rows[0], "unknown")) {
				err = fmt.Errorf("rows %q", rows)
			}
			return err
		})
	}
	if rows, err := top(s.Logical, "nodes"); err != nil || len(rows) != 2 {
		t.Errorf("nodes %q, want those of the two clusters: %v", rows, err)
	}
}

func TestMetricsAreAnAPILikeAnyOther(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	expect.RolledOut(s, "web", 2)
	expect.Says(t, s.Logical.Kubectl("api-resources", "--api-group=metrics.k8s.io", "-o", "wide"), "NodeMetrics", "PodMetrics", "get,list")
	expect.Says(t, s.Logical.Kubectl("explain", "podmetrics.containers.usage"), "PodMetrics", "metrics.k8s.io")
	expect.Says(t, s.Logical.Kubectl("get", "apiservice", "v1beta1.metrics.k8s.io"), "Local", "True")
	s.Logical.Within(scraped).Poll("pods have a table of metrics", func() error {
		result := s.Logical.Try("get", "pods.metrics.k8s.io")
		if rows := strings.Count(result.Stdout, "\n"); rows != 3 || !strings.HasPrefix(result.Stdout, "NAME") || !strings.Contains(result.Stdout, "WINDOW") {
			return fmt.Errorf("%s", result)
		}
		return nil
	})
	// Without a group, nodes and pods are the real ones.
	expect.Says(t, s.Logical.Kubectl("get", "pods"), "Running")

	viewer := s.Logical.As(framework.ServiceAccount(s, "viewer", "view"))
	viewer.Poll("whoever may view a namespace may see what its pods use", func() error { return framework.Failure(viewer.Try("top", "pods")) })
	expect.Refused(t, viewer.In("default").Try("top", "pods"), "forbidden")
	expect.Refused(t, viewer.Try("top", "nodes"), "forbidden")
}

func TestAnAutoscalerScalesOverClusters(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("web", 2), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
	}), "east,west"), `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
  minReplicas: 2
  maxReplicas: 6
  metrics:
  - type: Resource
    resource:
      name: cpu
      target:
        type: Utilization
        averageUtilization: 50
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 0
`)
	expect.RolledOut(s, "web", 2)
	use(s, s.East, "app=web", "300m", "10Mi")
	use(s, s.West, "app=web", "300m", "10Mi")
	waiting := *s
	waiting.Logical = s.Logical.Within(scraped)
	d := expect.RolledOut(&waiting, "web", 6)
	shares := framework.DecisionOf(s, d)
	if shares["east"].Replicas+shares["west"].Replicas != 6 || shares["east"].Replicas == 0 || shares["west"].Replicas == 0 {
		t.Errorf("the decision is %v, want 6 replicas over both clusters", shares)
	}
	for side, cluster := range map[*framework.Side]string{s.East: "east", s.West: "west"} {
		framework.Await(side, "web", "has its share", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == shares[cluster].Replicas })
		if list := side.Kubectl("get", "hpa", "-o", "name"); list != "" {
			t.Errorf("cluster %s has %s: two autoscalers would fight", cluster, list)
		}
	}
	expect.Says(t, s.Logical.Kubectl("describe", "hpa", "web"), "ScalingActive   True", "ValidMetricFound", "SuccessfulRescale", "New size: 6")

	use(s, s.East, "app=web", "1m", "10Mi")
	use(s, s.West, "app=web", "1m", "10Mi")
	expect.RolledOut(&waiting, "web", 2)
	expect.Says(t, s.Logical.Kubectl("describe", "hpa", "web"), "New size: 2")
}

func TestAnAutoscalerScalesAStatefulSet(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Database("db", 1, manifests.SetOn("west"), func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}))
	expect.SetRolledOut(s, "db", 1)
	s.Logical.Kubectl("autoscale", "statefulset", "db", "--cpu=50%", "--min=1", "--max=3")
	use(s, s.West, "app=db", "300m", "10Mi")
	expect.Pods(s.Logical.Within(scraped), "app=db", manifests.Ordinals("db", 0, 3))
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 0, 3))
}

func TestClustersWithoutMetricsAreNamed(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	expect.RolledOut(s, "web", 2)
	s.Logical.Within(scraped).Poll("both clusters have metrics", func() error {
		pods, err := top(s.Logical, "pods")
		if nodes, err := top(s.Logical, "nodes"); err != nil || len(nodes) != 2 {
			return fmt.Errorf("nodes %q: %w", nodes, err)
		}
		if len(pods) != 2 {
			return fmt.Errorf("pods %q: %w", pods, err)
		}
		return err
	})
	for _, cluster := range []string{"west", "east"} {
		if err := s.Environment.Clusters[cluster].Kill(stock.MetricsServer); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := framework.AfterTest()
			defer cancel()
			if err := s.Environment.Clusters[cluster].Restart(ctx, stock.MetricsServer); err != nil {
				t.Error(err)
			}
		})
		if cluster == "west" {
			for _, what := range []string{"nodes", "pods"} {
				s.Logical.Poll("the other cluster's "+what+" are shown, and who is missing", func() error {
					r := s.Logical.Try("top", what, "--no-headers")
					known := strings.Count(r.Stdout, "\n") - strings.Count(r.Stdout, "west ")
					if r.Code != 0 || known != 1 || !strings.Contains(r.Stderr, `Warning: no metrics of cluster "west": its metrics API does not work`) {
						return fmt.Errorf("%s", r)
					}
					return nil
				})
			}
		}
	}
	for _, what := range []string{"nodes", "pods"} {
		s.Logical.Poll("nobody's "+what, func() error {
			r := s.Logical.Try("top", what)
			if r.Code == 0 || !strings.Contains(r.Stderr, `(ServiceUnavailable): no cluster has metrics: cluster "east": its metrics API`) ||
				!strings.Contains(r.Stderr, `; cluster "west": its metrics API`) {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
	}
}

// Somebody applies the manifest of metrics-server by habit; somebody else has an adapter and means it.
func TestAMetricsAPIOfOnesOwn(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	clustersAnswer := func() error {
		nodes, err := top(s.Logical, "nodes")
		if err == nil && len(nodes) != 2 {
			err = fmt.Errorf("nodes %q", nodes)
		}
		return err
	}
	s.Logical.Within(scraped).Poll("the clusters tell what their nodes use", clustersAnswer)
	s.Logical.Apply(`
apiVersion: v1
kind: Service
metadata:
  name: adapter
spec:
  type: ExternalName
  externalName: 127.0.0.1
`)
	own := fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service:
    name: adapter
    namespace: %s
    port: 1
`, s.Namespace)
	for _, verb := range []string{"apply", "replace", "apply"} {
		result := s.Logical.TryInput(own, verb, "-f", "-")
		if result.Code != 0 {
			t.Fatal(result)
		}
		expect.Says(t, result.Stderr, "APIService v1beta1.metrics.k8s.io is left unchanged", "Service "+s.Namespace+"/adapter")
		expect.Says(t, s.Logical.Kubectl("get", "apiservice", "v1beta1.metrics.k8s.io"), "Local", "True")
		if err := clustersAnswer(); err != nil {
			t.Errorf("after kubectl %s: %v", verb, err)
		}
	}

	s.Logical.Kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io")
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found")
	})
	s.Logical.KubectlInput(own, "create", "-f", "-")
	answersNot := func() error {
		if r := s.Logical.Try("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"); r.Code == 0 || !strings.Contains(r.Stderr, "unable to handle the request") {
			return fmt.Errorf("the clusters still answer: %s", r)
		}
		return nil
	}
	s.Logical.Poll("the adapter is asked, which is not there", answersNot)
	if err := s.Environment.Manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(s.Context()); err != nil {
		t.Fatal(err)
	}
	s.Logical.Poll("it is asked after a restart", answersNot)
	s.Logical.Kubectl("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available=False", "--timeout=60s")
	s.Logical.Kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io")
	s.Logical.Poll("the clusters answer again", clustersAnswer)
}
