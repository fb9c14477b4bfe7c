package delivery

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// registerWebhook has a webhook asked about what is written of a resource in the namespace of the scenario. The configuration is of one of the two kinds.
func registerWebhook(s *framework.Scenario, kind, group, resource string, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	s.Helper()
	url, authority := framework.ServeAdmission(s.T, answer)
	name := "of-" + s.Namespace
	s.Cleanup(func() { s.Logical.Try("delete", strings.ToLower(kind), name) })
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: policy.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %s, caBundle: %s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [%q], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%s]}]
`, kind, name, url, base64.StdEncoding.EncodeToString(authority), s.Namespace, group, resource))
}

// replacing answers with a patch where an object contains a text, and allows all else as it is.
func replacing(text, path, value string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		answer := &admissionv1.AdmissionResponse{Allowed: true}
		if strings.Contains(string(request.Object.Raw), text) {
			answer.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			answer.Patch = fmt.Appendf(nil, `[{"op": "replace", "path": %q, "value": %q}]`, path, value)
		}
		return answer
	}
}

// knownImages has a webhook deny Deployments with images that nobody knows, as most webhooks do: without a code.
func knownImages(s *framework.Scenario) {
	s.Helper()
	registerWebhook(s, "ValidatingWebhookConfiguration", "apps", "deployments", func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if strings.Contains(string(request.Object.Raw), `"image":"evil:`) {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "nobody knows this image"}}
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	s.Logical.Poll("the webhook is asked", func() error {
		if got := s.Logical.Try("create", "deployment", "probe", "--image=evil:1", "--dry-run=server"); !strings.Contains(got.Stderr, "nobody knows this image") {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
}

// Clusters hold what the manifest says. So what a webhook makes otherwise of pods is refused before a cluster runs what it has taken away.
func TestClustersRunNothingThatAWebhookChanges(t *testing.T) {
	s := suite.Scenario(t)
	registerWebhook(s, "MutatingWebhookConfiguration", "apps", "deployments", replacing(`"image":"evil:`, "/spec/template/spec/containers/0/image", "safe:1"))
	s.Logical.Poll("the webhook is asked", func() error {
		got := s.Logical.Kubectl("create", "deployment", "probe", "--image=evil:1", "--dry-run=server", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
		if got != "safe:1" {
			return fmt.Errorf("the image is %q", got)
		}
		return nil
	})
	s.Logical.Apply(stagedApp("evil:1", []string{"{name: K8S_SYNC}"}))
	failed := awaitPhase(s, "web-v1", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", `sets /spec/template/spec/containers/0/image to "safe:1"`)
	if got := expect.Runs(s, "east", "web"); got != "nothing" {
		t.Errorf("cluster east runs %s", got)
	}
	s.Logical.Apply(stagedApp("good:1", []string{"{name: K8S_SYNC}"}))
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
}

// evilSecond are two targets, of which the second one has an image that nobody knows.
const evilSecond = `
  - {name: first, cluster: east}
  - name: second
    cluster: west
    patches: [{patch: '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]', target: {kind: Deployment}}]`

// The Deployment above shows what the first target has, or what users have applied. So what the second one has is asked about before the release
// begins, or never.
func TestWebhooksDenyWhatOneTargetAloneHas(t *testing.T) {
	framework.Long(t)
	for name, test := range map[string]struct{ applied, app string }{
		"of manifests": {app: strings.Replace(stagedApp("web:1", []string{"{name: K8S_SYNC}"}), "[{name: first, cluster: east}]", evilSecond, 1)},
		"of what users apply": {applied: manifests.Edited(manifests.Deployment("web", 1), func(d *appsv1.Deployment) { d.Labels = map[string]string{"app": "web"} }), app: `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {selector: {matchLabels: {app: web}, kinds: [Deployment]}}
  targets:` + evilSecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := suite.Scenario(t)
			knownImages(s)
			if test.applied != "" {
				s.Logical.Apply(test.applied)
			}
			s.Logical.Apply(test.app)
			failed := awaitPhase(s, "web-v1", v1alpha1.ReleaseFailed)
			expect.Says(t, failed.Status.Message, "nothing of it is applied", `target "second": Deployment/web`, "nobody knows this image")
			if got := expect.Runs(s, "west", "web"); strings.Contains(got, "evil") {
				t.Errorf("cluster west runs %s", got)
			}
		})
	}
}

// What somebody has set of the Deployment above is not what clusters hold.
func TestAPolicyIsAskedAboutTheManifestAlone(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	registerWebhook(s, "ValidatingWebhookConfiguration", "apps", "deployments", func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if strings.Contains(string(request.Object.Raw), `"terminationGracePeriodSeconds":7`) {
			return &admissionv1.AdmissionResponse{Allowed: true}
		}
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "the policy does not bear it"}}
	})
	s.Logical.Poll("the webhook is asked", func() error {
		if got := s.Logical.Try("create", "deployment", "probe", "--image=web:1", "--dry-run=server"); !strings.Contains(got.Stderr, "the policy does not bear it") {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
	ed := given(s, "ed", "edit", "patch deployments")
	app := func(image, grace string) string {
		return strings.Replace(stagedApp(image, []string{"{name: K8S_SYNC}"}), "            spec:\n", "            spec:\n"+grace, 1)
	}
	s.Logical.Apply(app("web:1", "              terminationGracePeriodSeconds: 7\n"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	told(ed.applies(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}
`))(t)
	s.Logical.Apply(app("web:2", ""))
	failed := awaitPhase(s, "web-v2", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, "nothing of it is applied", "Deployment/web", "the policy does not bear it")
	if got := s.East.Try("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.terminationGracePeriodSeconds}").Stdout; got != "web:1 7" {
		t.Errorf("east runs %s", got)
	}
}

func TestDeliveryAloneSaysWhatClustersHoldOtherwise(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	ed := given(s, "ed", "edit", "patch services")
	delivery := somebody{s, []string{"--as=" + manifold.DeliveryUser}}
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {manifold.dev/clusters: "east,west"%s}}
spec: {selector: {app: web}, ports: [{port: 80}]}
`
	const ignored = "metadata.annotations[delivery.manifold.dev/routes]: only Manifold writes this, so your value is ignored"
	to := func(app string) string {
		return fmt.Sprintf(`, delivery.manifold.dev/routes: '{"east":{"/spec/selector/app":{"is":"%s"}}}'`, app)
	}
	selects := func(side *framework.Side) string {
		return side.Try("get", "service", "web", "-o", "jsonpath={.spec.selector.app}").Stdout
	}
	s.Logical.Apply(fmt.Sprintf(service, ""))
	awaitIn(s, "what the Service leads to", "web", selects)
	for name, try := range map[string]func() framework.Result{
		"server-side apply": func() framework.Result { return ed.applies(fmt.Sprintf(service, to("vault"))) },
		"annotate": func() framework.Result {
			return ed.try("annotate", "--overwrite", "service/web", `delivery.manifold.dev/routes={"east":{"/spec/selector/app":{"is":"vault"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			told(try(), ignored)(t)
			if got := routesAbove(s, "service/web"); got != "" {
				t.Errorf("it says %s", got)
			}
		})
	}
	told(delivery.applies(fmt.Sprintf(service, to("canary"))))(t)
	s.Logical.Poll("east holds what delivery says", func() error {
		if got := selects(s.East) + " " + selects(s.West); got != "canary web" {
			return fmt.Errorf("they lead to %s", got)
		}
		return nil
	})
	told(ed.applies(fmt.Sprintf(service, to("vault"))), ignored)(t)
	told(ed.try("annotate", "service/web", "delivery.manifold.dev/routes-"))(t)
	awaitIn(s, "what the Service leads to, once the users have taken that away", "web", selects)
}
