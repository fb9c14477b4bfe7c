package clients

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// readingVerbs look at what is there.
var readingVerbs = []verb{
	{"get -w", getWatch},
	{"get --field-selector", getFieldSelector},
	{"get --sort-by", getSortBy},
	{"get --chunk-size", getChunks},
	{"get by label, output and subresource", getOutputs},
	{"events", listEvents},
	{"wait for Deployments and pods", waitForWorkloads},
	{"wait for creation and deletion", waitForExistence},
}

func getWatch(s *framework.Scenario) {
	onBoth(s, 2)
	pods := s.Logical.Start("get", "pods", "-l", "app=web", "-w", "--output-watch-events",
		"-o", "custom-columns=TYPE:type,NODE:object.metadata.name,PHASE:object.status.phase,NODE:object.spec.nodeName")
	deployments := s.Logical.Start("get", "deployment", "web", "-w")
	pods.AwaitOutput("ADDED")
	deployments.AwaitOutput("2/2")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	deployments.AwaitOutput("4/4")
	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	pods.AwaitOutput("DELETED")
	for _, cluster := range []string{"east", "west"} {
		pods.AwaitOutput("Running   " + cluster)
	}
	only := s.Logical.Start("get", "configmaps", "--watch-only", "--request-timeout=60s")
	s.Logical.Kubectl("create", "configmap", "first")
	looks := 0
	s.Logical.Poll("a change is watched", func() error {
		looks++ // another change, until the watch has begun
		s.Logical.Kubectl("annotate", "configmap", "first", fmt.Sprintf("looks=%d", looks), "--overwrite")
		return framework.Contains(only.Output(), "first")
	})
	if strings.Contains(only.Output(), "kube-root-ca.crt") {
		s.Errorf("--watch-only shows what was there before:\n%s", only.Output())
	}
}

func getFieldSelector(s *framework.Scenario) {
	pods := onBoth(s, 4)
	names := func(selector string) []string {
		out := s.Logical.Kubectl("get", "pods", "-o", "name", "--field-selector", selector)
		return strings.Fields(out)
	}
	for cluster, pod := range pods {
		if got := names("metadata.name=" + pod.Name); len(got) != 1 || got[0] != "pod/"+pod.Name {
			s.Errorf("by its name: %q", got)
		}
		if got := names("status.podIP=" + pod.Status.PodIP); !slices.Contains(got, "pod/"+pod.Name) {
			s.Errorf("by its address: %q", got)
		}
		if got := names("spec.nodeName=" + cluster + ",status.phase=Running"); !slices.Contains(got, "pod/"+pod.Name) || len(got) != 2 {
			s.Errorf("by cluster %s and phase: %q", cluster, got)
		}
		if got := names("spec.nodeName!=" + cluster); slices.Contains(got, "pod/"+pod.Name) || len(got) != 2 {
			s.Errorf("by another cluster than %s: %q", cluster, got)
		}
	}
	if got := names("status.phase!=Running"); len(got) != 0 {
		s.Errorf("by another phase: %q", got)
	}
	events := s.Logical.Kubectl("get", "events", "-o", "name", "--field-selector=involvedObject.kind=Deployment,involvedObject.name=web,reason=ScalingReplicaSet")
	if len(strings.Fields(events)) == 0 {
		s.Error("no event is found by its object and reason")
	}
	expect.Refused(s.T, s.Logical.Try("get", "pods", "--field-selector=spec.color=blue"), "field label not supported")
}

func getSortBy(s *framework.Scenario) {
	onBoth(s, 4)
	for _, by := range []string{".metadata.name", ".spec.nodeName", ".status.podIP"} {
		got := framework.Lines(s.Logical.Kubectl("get", "pods", "--sort-by="+by, "--no-headers", "-o", "custom-columns=FIELD:"+by))
		if len(got) != 4 || !slices.IsSorted(got) {
			s.Errorf("sorted by %s: %q", by, got)
		}
	}
	got := framework.Lines(s.Logical.Kubectl("get", "pods", "--sort-by=.metadata.creationTimestamp", "--no-headers", "-o", "custom-columns=FIELD:.metadata.creationTimestamp"))
	if len(got) != 4 || !slices.IsSorted(got) {
		s.Errorf("sorted by age: %q", got)
	}
	expect.Says(s.T, s.Logical.Kubectl("get", "events", "--sort-by=.lastTimestamp"), "ScalingReplicaSet")
}

func getChunks(s *framework.Scenario) {
	onBoth(s, 4)
	for _, kind := range []string{"pods", "events"} {
		all := framework.Lines(s.Logical.Kubectl("get", kind, "-o", "name", "--chunk-size=0"))
		chunked := s.Logical.Try("get", kind, "-o", "name", "--chunk-size=3", "-v=6")
		if got := framework.Lines(chunked.Stdout); len(got) < len(all) || len(all) < 4 {
			s.Errorf("%d %s in chunks, want %d or more", len(got), kind, len(all))
		}
		expect.Says(s.T, chunked.Stderr, "limit=3", "continue=")
	}
}

func getOutputs(s *framework.Scenario) {
	onBoth(s, 2)
	expect.Says(s.T, s.Logical.Kubectl("get", "all"), "pod/web-", "deployment.apps/web", "replicaset.apps/web-")
	expect.Says(s.T, s.Logical.Kubectl("get", "deploy,rs,po", "-l", "app=web", "--show-labels", "-L", "app"), "APP", "pod-template-hash=")
	expect.Says(s.T, s.Logical.Kubectl("get", "deployment", "web", "--subresource=scale"), "DESIRED", "AVAILABLE")
	expect.Says(s.T, s.Logical.Kubectl("get", "deployment", "web", "--subresource=status", "-o", "jsonpath={.status.readyReplicas}"), "2")
	expect.Says(s.T, s.Logical.Kubectl("get", "pods", "-o", "go-template={{range .items}}{{.status.phase}} {{end}}"), "Running Running ")
	expect.Says(s.T, s.Logical.Kubectl("get", "pods", "-A", "-o", "wide"), s.Namespace)
	result := s.Logical.Try("get", "pods", "nobody", "--ignore-not-found")
	if result.Code != 0 || result.Stdout != "" {
		s.Errorf("--ignore-not-found: %s", result)
	}
}

func listEvents(s *framework.Scenario) {
	watching := s.Logical.Start("events", "--watch", "--for=deployment/web")
	pods := onBoth(s, 2)
	watching.AwaitOutput("ScalingReplicaSet")
	s.Logical.Poll("the Deployment's events are listed", func() error {
		return framework.Contains(s.Logical.Kubectl("events", "--for=deployment/web"), "ScalingReplicaSet", "Deployment/web")
	})
	for cluster, pod := range pods {
		s.Logical.Poll("the pod's events are listed", func() error {
			return framework.Contains(s.Logical.Kubectl("events", "--for=pod/"+pod.Name, "--types=Normal"), "Scheduled", "assigned", cluster)
		})
	}
	expect.Says(s.T, s.Logical.Kubectl("events", "-o", "json"), `"reason": "ScalingReplicaSet"`)
}

func waitForWorkloads(s *framework.Scenario) {
	onBoth(s, 2)
	for _, condition := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		s.Logical.Kubectl("wait", "pods", "--all", "--for=condition="+condition, "--timeout=60s")
	}
	s.Logical.Kubectl("wait", "pods", "-l", "app=web", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
	s.Logical.Kubectl("wait", "deployment/web", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=60s")

	// What never becomes ready is told by the same conditions.
	s.Logical.Apply(manifests.Edited(manifests.Pinned(manifests.Deployment("sick", 2), "east,west"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.invalid/web:1"
		d.Spec.ProgressDeadlineSeconds = new(int32(1))
	}))
	s.Logical.Kubectl("wait", "deployment/sick", "--for=condition=Available=False", "--timeout=60s")
	s.Logical.Kubectl("wait", "deployment/sick", "--for=condition=Progressing=False", "--timeout=60s")
	s.Logical.Kubectl("wait", "pods", "-l", "app=sick", "--for=condition=Ready=False", "--timeout=60s")
	expect.Refused(s.T, s.Logical.Try("rollout", "status", "deployment/sick", "--timeout=60s"), "exceeded its progress deadline")
	expect.Refused(s.T, s.Logical.Try("wait", "deployment/sick", "--for=condition=Available", "--timeout=1s"), "timed out")
}

func waitForExistence(s *framework.Scenario) {
	coming := s.Logical.Start("wait", "deployment/web", "--for=create", "--timeout=60s")
	pods := onBoth(s, 2)
	if result := coming.AwaitEnd(); result.Code != 0 {
		s.Errorf("waiting for the Deployment to come: %s", result)
	}
	args := []string{"wait", "--for=delete", "--timeout=60s", "deployment/web"}
	for _, pod := range pods {
		args = append(args, "pod/"+pod.Name)
	}
	going := s.Logical.Start(args...)
	s.Logical.Kubectl("delete", "deployment", "web", "--wait=false")
	if result := going.AwaitEnd(); result.Code != 0 {
		s.Errorf("waiting for the Deployment and its pods to go: %s", result)
	}
	for _, pod := range pods {
		framework.AwaitGone[*corev1.Pod](sideOf(s, pod), pod.Name)
	}
}
