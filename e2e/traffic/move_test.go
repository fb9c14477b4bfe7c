package traffic

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// requests are how many a stream sends at least.
const requests = 2000

func TestAMoveAndBackLosesNoRequest(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("east", 4))
	expect.RolledOut(s.Scenario, "web", 4)
	client := s.client(above)
	s.answered(client, "http://web/", "east")

	stream := s.stream(client)
	for _, way := range []struct {
		to   string
		from *framework.Side
	}{{"west", s.East}, {"east", s.West}} {
		s.Logical.CLI("move", "deployment/web", "--to", way.to)
		framework.AwaitList(way.from, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		s.answered(client, "http://web/", way.to)
	}
	s.Logical.Poll("enough requests are answered", func() error {
		if r := stream.Report(); r.Sent < requests {
			return errors.New(r.String())
		}
		return nil
	})
	report := stream.Stop()
	t.Log(report)
	if report.Failed > 0 || report.Misrouted > 0 {
		t.Errorf("%s: want no request lost", report)
	}
	if report.Clusters["east"] == 0 || report.Clusters["west"] == 0 {
		t.Errorf("%s: want answers from both clusters", report)
	}
}

func TestARolloutInsideOfAClusterLosesNoRequest(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("west", 3))
	expect.RolledOut(s.Scenario, "web", 3)
	client := s.client("west")
	s.answered(client, "http://web/", "west")

	stream := s.stream(client)
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:v2")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=1m")
	framework.AwaitList(s.West, "app=web", "only the new pods are left", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if pod.Spec.Containers[0].Image != "web:v2" {
				return false
			}
		}
		return len(pods) == 3
	})
	report := stream.Stop()
	t.Log(report)
	if report.Failed > 0 || report.Misrouted > 0 || report.Versions["v1"] == 0 || report.Versions["v2"] == 0 {
		t.Errorf("%s: want no request lost, and answers from both versions", report)
	}
}

func TestPodsReachOneAnotherInTheirCluster(t *testing.T) {
	s := newScenario(t)
	s.Logical.Apply(web("east", 2), `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {manifold.dev/clusters: east}}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: "db:v1", ports: [{containerPort: 5432}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`)
	expect.RolledOut(s.Scenario, "web", 2)
	expect.SetRolledOut(s.Scenario, "db", 2)
	client := s.client("east")
	for _, url := range []string{"http://web/", "http://web." + s.Namespace + "/", "http://web." + s.Namespace + ".svc.cluster.local/", "http://db:5432/"} {
		s.answered(client, url, "east")
	}
	for _, pod := range []string{"db-0", "db-1"} {
		if answer := s.answered(client, "http://"+pod+".db:5432/", "east"); answer.Pod != pod {
			t.Errorf("%s.db is answered by %s", pod, answer.Pod)
		}
	}
}

// flat has the clusters share a network until the test ends.
func (s *scenario) flat() {
	s.Helper()
	clusters := s.Logical.Dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("clusters"))
	for _, name := range []string{"east", "west"} {
		patch := []byte(`{"spec":{"network":"flat"}}`)
		if _, err := clusters.Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() {
			ctx, cancel := framework.AfterTest()
			defer cancel()
			if _, err := clusters.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"network":null}}`), metav1.PatchOptions{}); err != nil {
				s.Error(err)
			}
		})
	}
}

// visitor is a Deployment that answers nobody, in a cluster.
func visitor(cluster string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: visitor, annotations: {manifold.dev/clusters: %q}}
spec:
  selector: {matchLabels: {app: visitor}}
  template:
    metadata: {labels: {app: visitor}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: visitor, image: "visitor:v1", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, cluster)
}

func TestClustersOfOneNetworkReachEachOthersServices(t *testing.T) {
	s := newScenario(t)
	s.flat()
	s.Logical.Apply(web("east", 2), visitor("west"))
	expect.RolledOut(s.Scenario, "web", 2)
	expect.RolledOut(s.Scenario, "visitor", 1)
	s.answered(s.client("west"), "http://web/", "east")
}

// Whoever moves to a cluster that has had nothing of its namespace is led to what it calls before it is made there, so that no request comes too early.
func TestACallerComesToAClusterAfterWhatItCalls(t *testing.T) {
	s := newScenario(t)
	s.flat()
	s.Logical.Apply(web("east", 2), visitor("east"))
	expect.RolledOut(s.Scenario, "web", 2)
	expect.RolledOut(s.Scenario, "visitor", 1)
	created := map[string]func() (uint64, bool){}
	for resource, of := range map[schema.GroupVersionResource]string{
		corev1.SchemeGroupVersion.WithResource("services"): "", discoveryv1.SchemeGroupVersion.WithResource("endpointslices"): v1alpha1.EndpointSlicesManager,
		appsv1.SchemeGroupVersion.WithResource("deployments"): "",
	} {
		created[resource.Resource] = s.created(s.West, resource, of)
	}
	s.Logical.CLI("move", "deployment/visitor", "--to", "west")
	s.answered(s.client("west"), "http://web/", "east")
	var revisions []uint64
	for _, resource := range []string{"services", "endpointslices", "deployments"} {
		s.Logical.Poll(resource+" were seen to be made in west", func() error {
			if _, seen := created[resource](); !seen {
				return errors.New("they were not")
			}
			return nil
		})
		revision, _ := created[resource]()
		revisions = append(revisions, revision)
	}
	if revisions[2] < revisions[0] || revisions[2] < revisions[1] {
		t.Errorf("the caller was made at revision %d of west's store, its Service at %d and what leads to its pods at %d", revisions[2], revisions[0], revisions[1])
	}
}

// created watches for the first object of a resource in the namespace that is made in a cluster, by that manager if one is named, and tells its revision.
func (s *scenario) created(side *framework.Side, resource schema.GroupVersionResource, manager string) func() (revision uint64, seen bool) {
	s.Helper()
	objects := side.Dynamic.Resource(resource).Namespace(s.Namespace)
	var options metav1.ListOptions
	if manager != "" {
		options.LabelSelector = discoveryv1.LabelManagedBy + "=" + manager
	}
	list, err := objects.List(s.Context(), options)
	if err != nil || len(list.Items) > 0 {
		s.Fatalf("%s in %s: %v, %v", resource.Resource, s.Namespace, list, err)
	}
	options.ResourceVersion = list.GetResourceVersion()
	watching, err := objects.Watch(s.Context(), options)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(watching.Stop)
	var first atomic.Uint64
	go func() {
		for event := range watching.ResultChan() {
			object, is := event.Object.(*unstructured.Unstructured)
			if is && event.Type == watch.Added && first.Load() == 0 {
				revision, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
				first.Store(revision)
			}
		}
	}()
	return func() (uint64, bool) { return first.Load(), first.Load() != 0 }
}

// The line for CoreDNS that the docs have makes names of the clusterset those of Services; the stand-in goes by it.
func TestAnExportedServiceIsReachedByItsNameInTheClusterset(t *testing.T) {
	s := newScenario(t)
	s.flat()
	s.Logical.Kubectl("apply", "-k", "../../config/crds/mcs")
	s.Logical.Kubectl("wait", "--for=condition=Established", "--timeout=20s", "crd/serviceexports.multicluster.x-k8s.io", "crd/serviceimports.multicluster.x-k8s.io")
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationTraffic+"=Local")
	s.Logical.Apply(web("east", 2), visitor("west"))
	expect.RolledOut(s.Scenario, "web", 2)
	expect.RolledOut(s.Scenario, "visitor", 1)
	url, client := "http://web."+s.Namespace+".svc.clusterset.local/", s.client("west")
	s.answered(s.client("east"), url, "east")
	if answer, err := s.ask(client, url); err == nil {
		t.Errorf("nobody exports it, and west is answered by %+v", answer)
	}
	const export = "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: web}\n"
	s.Logical.Poll("it is exported", func() error { return framework.Failure(s.Logical.TryInput(export, "apply", "-f", "-")) })
	s.answered(client, url, "east")
	s.Logical.Kubectl("delete", "serviceexport", "web")
	s.Logical.Poll("west reaches it no more", func() error {
		if answer, err := s.ask(client, url); err == nil {
			return fmt.Errorf("answered by %+v", answer)
		}
		return nil
	})
}
