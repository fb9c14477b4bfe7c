package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

const rollout = `
apiVersion: v1
kind: Service
metadata: {name: web-stable}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web-canary}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: check}
spec:
  metrics:
  - name: check
    provider:
      job:
        spec:
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              containers: [{name: check, image: "check:1"}]
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      canaryMetadata: {labels: {role: canary}}
      stableMetadata: {labels: {role: stable}}
      steps:
      - setWeight: 25
      - pause: {}
      - analysis: {templates: [{templateName: check}]}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}
`

// awaitLeader waits until somebody holds the lease of an operator.
func awaitLeader(s *framework.Scenario, lease string) {
	s.Helper()
	framework.Await(s.Logical, lease, "is held", func(l *coordinationv1.Lease) bool {
		return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	})
}

// withImage claims that there are that many pods with the image, all ready.
func withImage(image string, count int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(count)(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != image }))
	}
}

// Argo Rollouts has no Deployments: it makes ReplicaSets and scales them step by step, labels their pods, and waits for Jobs.
func TestArgoRollouts(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	l := s.Logical
	s.InstallCRDs(tools.ArgoRollouts, "manifests/crds/*-crd.yaml")
	l.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=east,west")
	operator := l.WithEnv("POD_NAMESPACE="+s.Namespace).StartOperator(s.Environment.Dir, tools.ArgoRollouts,
		"--namespaced", "--namespace", s.Namespace, "--leader-election-lease-duration=8s", "--leader-election-renew-deadline=6s",
		"--leader-election-retry-period=1s", fmt.Sprintf("--metricsPort=%d", s.FreePort()), fmt.Sprintf("--healthzPort=%d", s.FreePort()))
	awaitLeader(s, "argo-rollouts-controller-lock")

	l.Apply(rollout)
	phase := func(want string) {
		t.Helper()
		l.Kubectl("wait", "rollout/web", "--for=jsonpath={.status.phase}="+want, "--timeout=60s")
	}
	phase("Healthy")
	framework.AwaitList(l, "app=web", "all run", withImage("web:1", 4))
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side, "app=web", "each cluster has its part", withImage("web:1", 2))
	}

	l.Kubectl("patch", "rollout", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}]`)
	phase("Paused")
	framework.AwaitList(l, "role=canary", "a quarter is new", withImage("web:2", 1))
	stable := framework.AwaitList(l, "role=stable", "the rest is old", withImage("web:1", 3))
	l.Kubectl("delete", "pod", stable[0].Name)
	framework.AwaitList(l, "role=stable", "the deleted pod is replaced", func(pods []*corev1.Pod) bool {
		return withImage("web:1", 3)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == stable[0].UID })
	})

	// It goes on after the operator has crashed.
	operator.Kill()
	l.Kubectl("patch", "rollout", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"pauseConditions":null}}`)
	operator.Restart()
	phase("Healthy")
	framework.AwaitList(l, "app=web", "all are new", withImage("web:2", 4))
	framework.AwaitList(l, "", "the analysis was a Job that was waited for", func(jobs []*batchv1.Job) bool {
		return len(jobs) == 1 && jobs[0].Status.Succeeded == 1
	})
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side, "app=web", "the new ones serve", func(sets []*appsv1.ReplicaSet) bool {
			for _, set := range sets {
				if set.Spec.Template.Spec.Containers[0].Image == "web:1" && *set.Spec.Replicas != 0 {
					return false
				}
			}
			return true
		})
	}
	if log := operator.LogTail(1000); strings.Contains(log, "panic") {
		t.Errorf("the operator has panicked:\n%s", log)
	}

	l.Kubectl("delete", "rollout", "web", "--cascade=foreground", "--timeout=60s")
	for _, side := range []*framework.Side{l, s.East, s.West} {
		framework.AwaitList(side, "", "no ReplicaSet is left", expect.Nothing[*appsv1.ReplicaSet])
		framework.AwaitList(side, "", "no Job is left", expect.Nothing[*batchv1.Job])
		framework.AwaitList(side, "", "no pod is left", expect.Nothing[*corev1.Pod])
	}
}
