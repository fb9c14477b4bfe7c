package api

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/hack/stock/kubelet"
)

// TestAWebhookInAPodIsCalled has an operator's pod run in a cluster, and its webhooks called by the Service that they name.
func TestAWebhookInAPodIsCalled(t *testing.T) {
	s := suite.Scenario(t)
	l := s.Logical
	port, authority := serveOperator(t, s)
	l.Apply(withListener("hook", port, "east"), serviceOf("hook"))
	expect.RolledOut(s, "hook", 1)
	bundle := base64.StdEncoding.EncodeToString(authority)
	name := "e2e-" + s.Namespace
	webhook := fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: %[1]s
webhooks:
- name: marks.e2e.example.com
  clientConfig:
    service: {namespace: %[2]s, name: hook, path: /mutate}
    caBundle: %[3]s
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: %[2]s
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: deployments.e2e.example.com
  clientConfig:
    service: {namespace: %[2]s, name: hook, path: /allow}
    caBundle: %[3]s
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: %[2]s
  rules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, s.Namespace, bundle)
	l.Apply(webhook)
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "mutatingwebhookconfiguration", name) })
	marked := func() error {
		r := l.Try("create", "configmap", "tried", "--dry-run=server", "-o", "jsonpath={.metadata.annotations.marked-by}")
		if r.Code != 0 || r.Stdout != "marks.e2e.example.com" {
			return fmt.Errorf("%s", r)
		}
		return nil
	}
	l.Poll("the webhook is called", marked)

	convertWidgets(s, name, bundle)

	// Elsewhere it is found again.
	l.Kubectl("annotate", "deployment/hook", "manifold.dev/clusters=west", "--overwrite")
	framework.AwaitList(s.East, "app=hook", "have left", func(d []*appsv1.Deployment) bool { return len(d) == 0 })
	if err := marked(); err != nil {
		t.Errorf("once its pod has moved, the webhook is not called: %v", err)
	}

	// Without a pod, the policy says what happens.
	l.Kubectl("scale", "deployment/hook", "--replicas=0")
	expect.SoonRefused(s, fmt.Sprintf(`no endpoints available for service "hook" in namespace "%s": none of its pods runs in a cluster`, s.Namespace),
		"create", "configmap", "tried", "--dry-run=server")
	l.Apply(strings.Replace(webhook, "failurePolicy: Fail", "failurePolicy: Ignore", 1))
	l.Poll("the webhook is passed over", func() error { return framework.Failure(l.Try("create", "configmap", "tried", "--dry-run=server")) })
	// What Manifold notes on a Deployment is not for webhooks to allow: with nobody to ask, this one could never be let go.
	expect.Refused(t, l.Try("label", "deployment/hook", "a=b"), `no endpoints available for service "hook"`)
	l.Kubectl("delete", "deployment", "hook", "--timeout=60s")
}

// convertWidgets has a custom resource converted by the webhook.
func convertWidgets(s *framework.Scenario, group, bundle string) {
	s.Helper()
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gears.%[1]s.example.com
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service: {namespace: %[2]s, name: hook, path: /convert}
        caBundle: %[3]s
  versions:
  - name: v1
    served: true
    storage: true
    schema: &schema
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v2
    served: true
    storage: false
    schema: *schema
`, group, s.Namespace, bundle))
	s.Cleanup(func() {
		s.Environment.Cleanup(s.T, "delete", "crd", "gears."+group+".example.com", "--wait=false")
	})
	s.Logical.Poll("a gear can be made", func() error {
		return framework.Failure(s.Logical.TryInput(fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: Gear, metadata: {name: first}}", group), "apply", "-f", "-"))
	})
	path := fmt.Sprintf("/apis/%s.example.com/v2/namespaces/%s/gears/first", group, s.Namespace)
	expect.Says(s.T, s.Logical.Kubectl("get", "--raw", path), `"kind":"Gear"`, `"convertedFrom":"`+group+`.example.com/v1"`)
	s.Logical.Kubectl("delete", "gear", "first", "--timeout=60s")
}

// TestAnAPIInAPodIsServed has the server of an aggregated API run in a cluster.
func TestAnAPIInAPodIsServed(t *testing.T) {
	s := suite.Scenario(t)
	l := s.Logical
	group := "e2e-" + s.Namespace + ".example.com"
	l.Apply(serviceOf("api"), fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.%[1]s
spec:
  group: %[1]s
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: %[2]s, name: api}
`, group, s.Namespace))
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "apiservice", "v1."+group) })
	condition := func(reason string) {
		t.Helper()
		l.Kubectl("wait", "apiservice/v1."+group, `--for=jsonpath={.status.conditions[?(@.type=="Available")].reason}=`+reason, "--timeout=60s")
	}
	condition("MissingEndpoints")
	expect.Refused(t, l.Try("get", "--raw", "/apis/"+group+"/v1/gauges"), "ServiceUnavailable")

	l.Apply(withListener("api", serveAggregated(t, s, group), "east,west"))
	condition("Passed")
	user := l.Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	expect.Says(t, l.Kubectl("get", "--raw", "/apis/"+group+"/v1/gauges"), "asked by "+user)

	l.Kubectl("scale", "deployment/api", "--replicas=0")
	condition("MissingEndpoints")
}

// servedBy is the manifest of a Deployment in whose pod a server of the test stands behind the port "https".
func withListener(name, port, clusters string) string {
	return manifests.Pinned(manifests.Edited(manifests.Deployment(name, 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{kubelet.AnnotationListener: "127.0.0.1:" + port}
		d.Spec.Template.Spec.Containers[0].Ports[0].Name = "https"
	}), clusters)
}

// serviceOf is the manifest of the Service of such a Deployment, at the port that everybody supposes.
func serviceOf(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 443, targetPort: https}]
`, name)
}

// serveOperator serves a webhook that marks what is made and one that converts, with a certificate for Service "hook". It returns its port
// and authority.
func serveOperator(t *testing.T, s *framework.Scenario) (port string, authority []byte) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
		answerReview(w, r, func(review *admissionv1.AdmissionReview) {
			patch := `[{"op":"add","path":"/metadata/annotations","value":{"marked-by":"marks.e2e.example.com"}}]`
			review.Response = &admissionv1.AdmissionResponse{
				UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch),
			}
		})
	})
	mux.HandleFunc("/allow", func(w http.ResponseWriter, r *http.Request) {
		answerReview(w, r, func(review *admissionv1.AdmissionReview) {
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		})
	})
	mux.HandleFunc("/convert", func(w http.ResponseWriter, r *http.Request) {
		answerReview(w, r, func(review *apiextensionsv1.ConversionReview) {
			review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
			for _, object := range review.Request.Objects {
				var u unstructured.Unstructured
				if err := u.UnmarshalJSON(object.Raw); err != nil {
					review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
					return
				}
				u.Object["convertedFrom"] = u.GetAPIVersion()
				u.SetAPIVersion(review.Request.DesiredAPIVersion)
				review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: &u})
			}
		})
	})
	server := httptest.NewUnstartedServer(mux)
	certificate, authority := framework.SelfSigned(t, "hook."+s.Namespace+".svc")
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndex(server.URL, ":")+1:], authority
}

func answerReview[T any](w http.ResponseWriter, r *http.Request, answer func(*T)) {
	var review T
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(&review)
	_ = json.NewEncoder(w).Encode(review) // The API server would report it.
}
