package api

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestCustomResourcesWorkAsOnAnyCluster(t *testing.T) {
	s := suite.Scenario(t)
	l := s.Logical
	l.Kubectl("create", "-f", "testdata/crd.yaml")
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "-f", "testdata/crd.yaml", "--wait=false") })
	l.Established(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.e2e.example.com}}`)
	l.Poll("the new kind can be created", func() error {
		return framework.Failure(l.Try("apply", "-f", "testdata/widget.yaml"))
	})

	expect.Says(t, l.Kubectl("get", "wi"), "COLOR", "gadget", "red")
	l.Poll("the new kind explains itself", func() error {
		if r := l.Try("explain", "widget.spec.color"); r.Code != 0 || !strings.Contains(r.Stdout, "What the widget looks like.") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	expect.Refused(t, l.Try("patch", "widget", "gadget", "--type=merge", "-p", `{"spec":{"color":"blue"}}`), `spec.color: Unsupported value: "blue"`)
	expect.Refused(t, l.Try("patch", "widget", "gadget", "--type=merge", "-p", `{"spec":{"count":10}}`), "no more than 9 widgets")
	l.Kubectl("scale", "widget/gadget", "--replicas=3")
	l.Kubectl("patch", "widget", "gadget", "--type=merge", "-p", `{"spec":{"color":"green"}}`)
	if got := l.Kubectl("get", "widget", "gadget", "-o", "jsonpath={.spec.color} {.spec.count}"); got != "green 3" {
		t.Errorf("the widget is %q, want green 3", got)
	}
	if r := l.Try("diff", "--server-side", "--force-conflicts", "--field-manager=kubectl-client-side-apply", "-f", "testdata/widget.yaml"); r.Code != 1 {
		t.Errorf("a changed widget does not differ from its manifest: %s", r)
	}
	l.Kubectl("delete", "widget", "gadget", "--timeout=60s")
}

func TestAValidatingWebhookRefuses(t *testing.T) {
	s := suite.Scenario(t)
	url, authority := serveWebhook(t, func(request *admissionv1.AdmissionRequest) string {
		if strings.Contains(request.Name, "forbidden") {
			return "the webhook does not like " + request.Name
		}
		return ""
	})
	name := "e2e-" + s.Namespace
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %[1]s
webhooks:
- name: names.e2e.example.com
  clientConfig:
    url: %[2]s
    caBundle: %[3]s
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: %[4]s
  rules:
  - apiGroups: ["", apps]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [configmaps, deployments]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, url, base64.StdEncoding.EncodeToString(authority), s.Namespace))
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "validatingwebhookconfiguration", name) })

	want := "the webhook does not like forbidden"
	expect.SoonRefused(s, want, "create", "configmap", "forbidden", "--dry-run=server")
	expect.Refused(t, s.Logical.TryInput(manifests.Deployment("forbidden-web", 1), "create", "-f", "-"), "the webhook does not like forbidden-web")
	s.Logical.Kubectl("create", "configmap", "welcome")
	s.Logical.Apply(manifests.Deployment("web", 1))
	expect.RolledOut(s, "web", 1)
}

// Pods of workloads are made in the clusters, so nobody is to wait for such a webhook where a cluster does not ask about them.
func TestAWebhookForPodsIsWarnedOf(t *testing.T) {
	s := suite.Scenario(t)
	register := func(kind, resource string) string {
		t.Helper()
		result := s.Logical.TryInput(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: e2e-%[2]s}
webhooks:
- name: hook.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:1/hook"}
  rules:
  - {apiGroups: ["", apps], apiVersions: [v1], operations: [CREATE], resources: [%[3]s]}
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`, kind, s.Namespace, resource), "create", "--dry-run=server", "-f", "-")
		if result.Code != 0 {
			t.Fatal(result)
		}
		return result.Stderr
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		expect.Says(t, register(kind, "pods"), `Warning: webhook "hook.e2e.example.com" is not called for the pods that Deployments and other workloads create in clusters "east", "west"`,
			"manifold cluster join east --cluster-kubeconfig FILE --pod-webhooks")
		if stderr := register(kind, "deployments"); stderr != "" {
			t.Errorf("%s for Deployments is warned of: %s", kind, stderr)
		}
	}
}

func TestACELPolicyRefuses(t *testing.T) {
	s := suite.Scenario(t)
	name := "e2e-" + s.Namespace
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments]
  validations:
  - expression: object.spec.replicas <= 3
    message: no more than 3 replicas here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: %[1]s
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: %[2]s
`, name, s.Namespace))
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "delete", "validatingadmissionpolicybinding", name)
		s.Environment.Cleanup(t, "delete", "validatingadmissionpolicy", name)
	})

	expect.SoonRefused(s, "no more than 3 replicas here", "create", "deployment", "big", "--image=web:1", "--replicas=4", "--dry-run=server")
	s.Logical.Apply(manifests.Deployment("web", 3))
	expect.Refused(t, s.Logical.TryInput(manifests.Deployment("web", 4), "apply", "-f", "-"), "no more than 3 replicas here")
	expect.RolledOut(s, "web", 3)
}

// serveWebhook serves a webhook on loopback that refuses what it has an objection to, and returns its URL and its authority.
func serveWebhook(t *testing.T, objection func(*admissionv1.AdmissionRequest) string) (url string, authority []byte) {
	t.Helper()
	return framework.ServeAdmission(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		message := objection(request)
		return &admissionv1.AdmissionResponse{Allowed: message == "", Result: &metav1.Status{Message: message}}
	})
}
