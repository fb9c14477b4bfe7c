package pipelines

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// shop is a Deployment of an image with a tag.
func shop(tag string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: shop, image: "ghcr.io/example/shop:%s", resources: {requests: {cpu: 10m, memory: 16Mi}}}
`, tag)
}

// promoter may write Deployments of a namespace, as the ServiceAccount of the pipeline's.
func promoter(pipelines string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: promoter}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: promoter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: promoter}
subjects: [{kind: ServiceAccount, name: promoter, namespace: %s}]
`, pipelines)
}

// promotions is a pipeline of the shop over three namespaces of a logical cluster whose webhooks are answered.
type promotions struct {
	*framework.Scenario
	address            string
	client             *http.Client
	dev, staging, prod string
}

const signingKey = "s3cret-word"

// freeAddress is one that nobody serves yet.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := stock.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func startPromotions(t *testing.T) *promotions {
	t.Helper()
	address := freeAddress(t)
	e := framework.StartOwn(t, framework.Options{Clusters: []string{"east"}, ManifoldArgs: []string{"--promotion-webhook-address=" + address}})
	s := framework.NewScenario(t, e)
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: e.Logical.Config.CAData, CAFile: e.Logical.Config.CAFile}})
	if err != nil {
		t.Fatal(err)
	}
	s.Logical.Kubectl("apply", "-k", definitions)
	served(s, pipelines, older)
	p := &promotions{Scenario: s, address: address, client: &http.Client{Transport: transport}}
	p.dev, p.staging, p.prod = namespace(s, "dev"), namespace(s, "staging"), namespace(s, "prod")
	s.Logical.Kubectl("create", "serviceaccount", "promoter")
	s.Logical.Kubectl("create", "secret", "generic", "hook", "--from-literal=hmac-key="+signingKey)
	for _, name := range []string{p.dev, p.staging, p.prod} {
		s.Logical.In(name).Apply(shop("1"))
	}
	for _, name := range []string{p.staging, p.prod} {
		s.Logical.In(name).Apply(promoter(s.Namespace))
	}
	return p
}

// await waits until the status of the shop's pipeline is as claimed.
func (p *promotions) await(claim string, is func(prod, staging weave.EnvironmentStatus) bool) {
	p.Helper()
	p.Logical.Within(time.Minute).Poll(claim, func() error {
		result := p.Logical.Try("get", pipelines, "shop", "-o", "json")
		if err := framework.Failure(result); err != nil {
			return err
		}
		of := weave.Pipeline{}
		if err := json.Unmarshal([]byte(result.Stdout), &of); err != nil {
			return err
		}
		prod, staging := of.Status.Environments["prod"], of.Status.Environments["staging"]
		if prod == nil || staging == nil || !is(*prod, *staging) {
			return fmt.Errorf("the status is %s", result.Stdout)
		}
		return nil
	})
}

func phase(of weave.EnvironmentStatus, revision string, phase weave.PromotionPhase) bool {
	return of.Promotion != nil && of.Promotion.Revision == revision && of.Promotion.Phase == phase
}

// tag is what a namespace is to run.
func (p *promotions) tag(namespace string) string {
	p.Helper()
	image := p.Logical.In(namespace).Kubectl("get", "deployment", "shop", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	return strings.TrimPrefix(image, "ghcr.io/example/shop:")
}

// call calls a webhook, and returns the code of the answer.
func (p *promotions) call(path, body, signature string) int {
	p.Helper()
	request, err := http.NewRequestWithContext(p.T.Context(), http.MethodPost, "https://"+p.address+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	if signature != "" {
		request.Header.Set("X-Signature", signature)
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

func signature(body string) string {
	mac := hmac.New(sha256.New, []byte(signingKey))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func TestW22W23W24W25W26W27AVersionGoesThroughItsEnvironments(t *testing.T) {
	p := startPromotions(t)
	p.Logical.Apply(fmt.Sprintf(`
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  environments:
  - {name: dev, targets: [{namespace: %s}]}
  - {name: staging, targets: [{namespace: %s}]}
  - name: prod
    targets: [{namespace: %s}]
    promotion: {manual: true, strategy: {direct: {serviceAccountName: promoter}, secretRef: {name: hook}}}
  promotion: {strategy: {direct: {serviceAccountName: promoter}, secretRef: {name: hook}}}
`, p.dev, p.staging, p.prod))

	// W24, W27: a change of the first environment starts it, and no object stands for it.
	p.Logical.In(p.dev).Apply(shop("2"))
	p.await("2 is verified in staging, and waits for prod", func(prod, staging weave.EnvironmentStatus) bool {
		return phase(staging, "2", weave.PromotionVerified) && prod.WaitingStatus != nil && prod.WaitingStatus.Revision == "2"
	})
	if got := p.tag(p.prod); got != "1" {
		t.Errorf("nobody has approved it, and prod is to run %s", got)
	}

	// W23: approved by CI.
	for _, test := range []struct {
		claim, path, body, signature string
		want                         int
	}{
		{"an approval that nobody has signed", "/approval/%s/shop/prod/2", "", "", 401},
		{"one that somebody else has", "/approval/%s/shop/prod/2", "", signature("x"), 401},
		{"one of what does not wait", "/approval/%s/shop/prod/3", "", signature(""), 422},
		{"a promotion", "/promotion/%s/shop/dev", event(p.dev), signature(event(p.dev)), 204},
		{"one of another namespace", "/promotion/%s/shop/dev", event(p.prod), signature(event(p.prod)), 422},
		{"an approval", "/approval/%s/shop/prod/2", "", signature(""), 204},
		{"the same again", "/approval/%s/shop/prod/2", "", signature(""), 204},
	} {
		if got := p.call(fmt.Sprintf(test.path, p.Namespace), test.body, test.signature); got != test.want {
			t.Errorf("%s is answered by %d, want %d", test.claim, got, test.want)
		}
	}
	p.await("2 is verified in prod", func(prod, _ weave.EnvironmentStatus) bool { return phase(prod, "2", weave.PromotionVerified) })

	// The port is one of its own, by TLS alone, and the API's port answers no webhooks.
	if response, err := http.Post("http://"+p.address+"/promotion/"+p.Namespace+"/shop/dev", "application/json", strings.NewReader(event(p.dev))); err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("a call in clear is answered by %s", response.Status)
		}
	}
	for _, path := range []string{"/api", "/apis/pipelines.weave.works/v1alpha1/pipelines", "/metrics", "/healthz", "/"} {
		if got := p.call(path, "", ""); got != http.StatusNotFound {
			t.Errorf("%s at the port of the webhooks is answered by %d", path, got)
		}
	}
	if got := p.Logical.TryInput("{}", "create", "--raw", "/promotion/"+p.Namespace+"/shop/dev", "-f", "-"); got.Code == 0 {
		t.Errorf("the API's port answers webhooks: %s", got)
	}

	// The server is killed while 3 is on its way.
	p.Logical.In(p.dev).Apply(shop("3"))
	if err := p.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.await("3 is verified in staging, and waits for prod", func(prod, staging weave.EnvironmentStatus) bool {
		return phase(staging, "3", weave.PromotionVerified) && prod.WaitingStatus != nil && prod.WaitingStatus.Revision == "3"
	})

	// W25: what cannot be done resumes by itself once it can.
	p.Logical.In(p.staging).Kubectl("delete", "rolebinding", "promoter")
	p.Logical.In(p.dev).Apply(shop("4"))
	p.await("4 cannot be promoted to staging, and it is said whose right is missing", func(_, staging weave.EnvironmentStatus) bool {
		return phase(staging, "4", weave.PromotionFailed) && strings.Contains(staging.Promotion.Message, "ServiceAccount "+p.Namespace+"/promoter")
	})
	p.Logical.In(p.staging).Apply(promoter(p.Namespace))
	p.await("4 is verified in staging", func(_, staging weave.EnvironmentStatus) bool { return phase(staging, "4", weave.PromotionVerified) })
	if got := p.tag(p.prod); got != "2" {
		t.Errorf("nobody has approved more than 2, and prod is to run %s", got)
	}
}

// TestW33ANotificationIsOneEventThatSomebodyElseActsOn has the test act on it, as a job of CI would that watches events.
func TestW33ANotificationIsOneEventThatSomebodyElseActsOn(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	prod := namespace(s, "prod")
	s.Logical.Apply(deployed("web", "registry.example/web:1.0", "app: web"))
	s.Logical.In(prod).Apply(deployed("web", "registry.example/web:1.0", "app: web"))
	s.Logical.Apply(pipeline("web", "Deployment/web", "  promotion: {strategy: {notification: {}}}\n", environment{"dev", []string{s.Namespace}}, environment{"prod", []string{prod}}))
	seen(s, "web", "prod", "1.0")
	events := func() (out []corev1.Event) {
		s.Helper()
		var list corev1.EventList
		if err := json.Unmarshal([]byte(s.Logical.Kubectl("get", "events", "--field-selector=reason=Promote,involvedObject.name=web", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	if got := events(); len(got) > 0 {
		t.Errorf("nothing is to be promoted, and there are the events %+v", got)
	}

	s.Logical.Apply(deployed("web", "registry.example/web:1.1", "app: web"))
	promotedTo(s, "prod", "1.1", weave.PromotionStarted, "")
	got := events()
	if len(got) != 1 || got[0].Annotations["environment"] != "prod" || got[0].Annotations["version"] != "1.1" || got[0].InvolvedObject.Kind != "Pipeline" || got[0].InvolvedObject.APIVersion != "pipelines.weave.works/v1alpha1" {
		t.Fatalf("the events are %+v", got)
	}
	if image := s.Logical.In(prod).Kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); image != "registry.example/web:1.0" {
		t.Errorf("nobody has acted on it, and prod is to run %s", image)
	}
	s.Logical.In(prod).Kubectl("set", "image", "deployment/web", "web=registry.example/web:"+got[0].Annotations["version"])
	promotedTo(s, "prod", "1.1", weave.PromotionVerified, "")
	if again := events(); len(again) != 1 || again[0].UID != got[0].UID {
		t.Errorf("the events are %+v, want the one", again)
	}
}

// event is what Flux would tell of the shop in a namespace.
func event(namespace string) string {
	return fmt.Sprintf(`{"involvedObject":{"apiVersion":"apps/v1","kind":"Deployment","name":"shop","namespace":%q},"metadata":{"revision":"2"}}`, namespace)
}
