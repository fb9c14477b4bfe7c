package pipecd

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
)

func TestWhatAFileBecomesIsAValidApplication(t *testing.T) {
	config := v1alpha1.PipecdConfig{AnalysisProviders: map[string]string{"prometheus-dev": "https://prometheus.example"}, ScriptImage: "alpine:3"}
	for name, body := range map[string]string{
		"the same pipeline for two clusters": `
name: shop
quickSync:
  prune: true
  multiTarget:
  - {provider: {name: hoge}, resourceDir: ./cluster-hoge}
  - {provider: {name: fuga}, resourceDir: ./cluster-fuga}
pipeline:
  stages:
  - name: K8S_CANARY_ROLLOUT
    with:
      replicas: 10%
      multiTarget: [{provider: {name: hoge}, resourceDir: ./cluster-hoge}, {provider: {name: fuga}, resourceDir: ./cluster-fuga}]
  - {name: K8S_BASELINE_ROLLOUT, with: {replicas: 1, createService: true}}
  - {name: K8S_TRAFFIC_ROUTING, with: {all: canary}}
  - {name: WAIT_APPROVAL, with: {approvers: [ada], timeout: 1h}}
  - {name: WAIT, with: {duration: 5m}}
  - {name: K8S_TRAFFIC_ROUTING, with: {all: primary}}
  - {name: K8S_PRIMARY_ROLLOUT}
  - {name: K8S_CANARY_CLEAN}
  - {name: K8S_BASELINE_CLEAN}
`,
		"weights of a mesh": `
name: shop
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, with: {replicas: 50%}}
  - {name: K8S_TRAFFIC_ROUTING, with: {canary: 10, primary: 90}}
  - {name: K8S_PRIMARY_ROLLOUT, with: {addVariantLabelToSelector: true}}
  - {name: K8S_CANARY_CLEAN}
trafficRouting: {method: istio, istio: {editableRoutes: [main], virtualService: {name: web}}}
driftDetection: {ignoreFields: ['apps/v1:Deployment::web#spec.replicas']}
`,
		"a mesh whose VirtualService is among the manifests": `
name: shop
pipeline:
  stages:
  - {name: K8S_CANARY_ROLLOUT, with: {replicas: 100%}}
  - {name: K8S_TRAFFIC_ROUTING, with: {all: canary}}
  - {name: K8S_PRIMARY_ROLLOUT}
  - {name: K8S_TRAFFIC_ROUTING, with: {all: primary}}
  - {name: K8S_CANARY_CLEAN}
trafficRouting: {method: istio, istio: {host: shop}}
`,
		"names of piped": `
name: shop
pipeline:
  stages:
  - {name: ANALYSIS, with: {duration: 10m, metrics: [{strategy: THRESHOLD, provider: prometheus-dev, query: up, interval: 1m, failureLimit: 1, expected: {max: 1}}]}}
  - {name: SCRIPT_RUN, with: {run: date, onRollback: date, env: {A: b}}}
  - {name: K8S_MULTI_PRIMARY_ROLLOUT, with: {suffix: stable, createService: true}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(kubernetesApp+indented(body)), config)
			if err != nil {
				t.Fatal(err)
			}
			object := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: got.Name, Namespace: "default"}, Spec: got.Spec}
			object.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example.com/shop.git", Path: "shop/prd"}
			v1alpha1.SetObjectDefaults_Application(object)
			if errs := validation.ValidateApplication(object); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
