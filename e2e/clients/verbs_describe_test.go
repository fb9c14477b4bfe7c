package clients

import (
	"fmt"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// describingVerbs show people what they look at first when something is wrong.
var describingVerbs = []verb{
	{"describe of every kind, with its events", describeKinds},
	{"wait for what other kinds tell", waitForOthers},
	{"cluster-info, auth can-i and whoami", askAround},
}

const everyKind = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {key: value}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, default: {cpu: 50m}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "100"}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old, annotations: {manifold.dev/clusters: west}}
spec:
  replicas: 1
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: app, image: app:1}]}
`

func describeKinds(s *framework.Scenario) {
	s.Logical.Apply(manifests.WebService, settings, everyKind, manifests.DaemonSet("agent", "east,west"), manifests.Database("db", 1, manifests.SetOn("west")),
		manifests.Job("sums", 1, 1, manifests.JobOn("east")), manifests.CronJob("nightly", "", "  suspend: true\n"), manifests.BarePod("worker", "west"))
	onBoth(s, 2)
	expect.SetRolledOut(s, "db", 1)
	s.Logical.Kubectl("autoscale", "deployment", "web", "--min=2", "--max=3")
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	s.Logical.Kubectl("wait", "pod/worker", "--for=condition=Ready", "--timeout=60s")
	for _, row := range []struct {
		object string
		want   []string
	}{
		{"deployment/web", []string{"2 desired | 2 updated | 2 total | 2 available", "ScalingReplicaSet"}},
		{"replicaset", []string{"Controlled By:  Deployment/web", "SuccessfulCreate"}},
		{"statefulset/db", []string{"1 Running / 0 Waiting", "SuccessfulCreate"}},
		{"daemonset/agent", []string{"Desired Number of Nodes Scheduled", "SuccessfulCreate"}},
		{"replicationcontroller/old", []string{"1 current / 1 desired", "SuccessfulCreate"}},
		{"job/sums", []string{"1 Succeeded", "SuccessfulCreate", "Completed"}},
		{"cronjob/nightly", []string{"Suspend:", "True", "Active Jobs:"}},
		{"pod/worker", []string{"Node:", "west", "Scheduled"}},
		{"service/web", []string{"app=web", "Endpoints:"}},
		{"ingress/site", []string{"web:80"}},
		{"networkpolicy/closed", []string{"app=web"}},
		{"poddisruptionbudget/guard", []string{"Max unavailable:", "Allowed disruptions:"}},
		{"hpa/web", []string{"Deployment/web", "Min replicas:", "AbleToScale"}},
		{"secret/token", []string{"key:"}},
		{"configmap/settings", []string{"color", "blue"}},
		{"serviceaccount/robot", []string{"Name:", "robot"}},
		{"limitrange/limits", []string{"Container", "50m"}},
		{"resourcequota/quota", []string{"pods", "100"}},
		{"endpointslice", []string{"AddressType", "Target", "Pod/web-"}},
		{"node/east", []string{"Allocatable:", "cluster"}},
		{"namespace/" + s.Namespace, []string{"Status:", "Active", "Resource Quotas"}},
		{"cluster/east", []string{"SyncerRunning", "Allocatable:"}},
	} {
		s.Logical.Poll("describe "+row.object, func() error {
			result := s.Logical.Try("describe", row.object)
			if object := row.object; result.Code != 0 {
				return fmt.Errorf("describe %s: %s", object, result)
			}
			return framework.Contains(result.Stdout, row.want...)
		})
	}
	for _, workload := range []string{"deployment/web", "statefulset/db", "daemonset/agent", "job/sums", "replicationcontroller/old"} {
		s.Logical.Poll("its events are listed", func() error {
			out := s.Logical.Kubectl("events", "--for="+workload)
			if workload == "deployment/web" {
				return framework.Contains(out, "ScalingReplicaSet")
			}
			return framework.Contains(out, "SuccessfulCreate")
		})
	}
}

func waitForOthers(s *framework.Scenario) {
	s.West.Apply(manifests.Volume(s))
	s.Cleanup(func() { s.West.Try("delete", "pv", s.Namespace, "--wait=false") })
	s.Logical.Apply(manifests.Claim, manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim), "west"), `
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`, manifests.Job("good", 1, 1, manifests.JobOn("west")), manifests.Job("bad", 1, 1, manifests.JobOn("west"), manifests.Outcome("fail"), manifests.Retries(0)))
	s.Logical.Kubectl("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
	s.Logical.Kubectl("wait", "deployment/web", "--for=condition=Available", "--for=condition=Progressing", "--timeout=60s")
	s.Logical.Kubectl("wait", "deployment/web", "--for=jsonpath={.status.availableReplicas}=1", "--timeout=60s")
	s.Logical.Kubectl("wait", "job/good", "--for=condition=Complete", "--timeout=60s")
	s.Logical.Kubectl("wait", "job/bad", "--for=condition=Failed", "--timeout=60s")
	s.Logical.Kubectl("wait", "job/good", "--for=jsonpath={.status.succeeded}=1", "--timeout=60s")
	waiting := s.Logical.Start("wait", "service/front", "--for=jsonpath={.status.loadBalancer.ingress}", "--timeout=60s")
	s.West.Kubectl("wait", "service/front", "--for=create", "--timeout=60s")
	s.West.Kubectl("patch", "service", "front", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`)
	if result := waiting.AwaitEnd(); result.Code != 0 {
		s.Errorf("waiting for an address: %s", result)
	}
	s.Logical.Kubectl("wait", "namespace/"+s.Namespace, "--for=jsonpath={.status.phase}=Active", "--timeout=60s")
	s.Logical.Kubectl("wait", "cluster/east", "node/east", "--for=condition=Ready", "--timeout=60s")
	s.Logical.Kubectl("delete", "deployment", "web", "--wait=false")
	s.Logical.Kubectl("wait", "deployment/web", "--for=delete", "--timeout=60s")
}

func askAround(s *framework.Scenario) {
	expect.Says(s.T, s.Logical.Kubectl("cluster-info"), "Kubernetes control plane", "is running at")
	expect.Says(s.T, s.Logical.Kubectl("auth", "can-i", "create", "deployments"), "yes")
	expect.Says(s.T, s.Logical.Kubectl("auth", "can-i", "--list"), "Resources", "Verbs")
	expect.Says(s.T, s.Logical.Kubectl("auth", "whoami"), "Username")
	result := s.Logical.Try("auth", "can-i", "create", "deployments", "--as=nobody")
	if result.Code != 1 {
		s.Errorf("somebody else may: %s", result)
	}
	expect.Says(s.T, s.Logical.Kubectl("api-resources", "--namespaced", "-o", "name"), "deployments.apps", "placementpolicies.manifold.dev")
	expect.Says(s.T, s.Logical.Kubectl("explain", "deployment.spec.replicas"), "Number of desired pods")
	expect.Says(s.T, s.Logical.Kubectl("explain", "cluster.spec.taints"), "taint")
}
