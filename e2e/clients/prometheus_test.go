package clients

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

const monitoring = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus}
---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: main}
spec:
  replicas: 2
  version: v3.4.0
  serviceAccountName: prometheus
  serviceMonitorSelector: {}
  ruleSelector: {}
  resources: {requests: {cpu: 10m, memory: 16Mi}}
---
apiVersion: monitoring.coreos.com/v1
kind: Alertmanager
metadata: {name: main}
spec:
  replicas: 1
  resources: {requests: {cpu: 10m, memory: 16Mi}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  endpoints: [{port: http}]
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: rules}
spec: {groups: [{name: web, rules: [{alert: Down, expr: "up == 0"}]}]}
`

// The Prometheus operator makes StatefulSets, Services, Secrets and ConfigMaps of its custom resources, and reads pods for their status.
// Its webhooks validate them and convert between their versions.
func TestThePrometheusOperator(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	l := s.Logical
	s.InstallCRDs(tools.PrometheusOperator, "example/prometheus-operator-crd-full/*.yaml")
	prometheusWebhooks(s)
	operator := l.StartOperator(s.Environment.Dir, tools.PrometheusOperator, "--namespaces="+s.Namespace,
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", s.FreePort()))

	l.Apply(monitoring)
	l.Kubectl("wait", "prometheus/main", "alertmanager/main", "--for=condition=Available", "--timeout=60s")
	set := framework.Await(l, "prometheus-main", "is rolled out", whole(2))
	below := s.Side(onlyCluster(s, set))
	framework.Await(below, "prometheus-main", "is rolled out", whole(2))
	framework.Await(below, "prometheus-operated", "is there", framework.Exists[*corev1.Service])
	framework.Await(below, "prometheus-main", "is there", framework.Exists[*corev1.Secret])
	framework.Await(below, "prometheus-main-rulefiles-0", "has the rules", func(c *corev1.ConfigMap) bool { return len(c.Data) == 1 })

	l.Kubectl("patch", "prometheus", "main", "--type=merge", "-p", `{"spec":{"version":"v3.5.0"}}`)
	monitored(s, 2, "v3.5.0")
	set = framework.Await(l, "prometheus-main", "is rolled out", whole(2))
	if set.Generation != 2 {
		t.Errorf("one change has led to generation %d, want 2: the operator is at odds with what it finds", set.Generation)
	}
	pods := framework.AwaitList(l, "prometheus=main", "are ready", expect.ReadyPods(2))
	l.Kubectl("delete", "pod", pods[0].Name)
	framework.AwaitList(l, "prometheus=main", "the deleted pod is replaced", func(now []*corev1.Pod) bool {
		return expect.ReadyPods(2)(now) && !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == pods[0].UID })
	})

	operator.Kill()
	l.Kubectl("patch", "prometheus", "main", "--type=merge", "-p", `{"spec":{"replicas":1}}`)
	operator.Restart()
	monitored(s, 1, "v3.5.0")

	// What cannot be changed is made anew by the operator.
	volumes(s)
	l.Apply(fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: kubernetes.io/no-provisioner\n", s.Namespace))
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "storageclass", s.Namespace) })
	before := framework.Await(l, "prometheus-main", "is rolled out", whole(1))
	l.Kubectl("patch", "prometheus", "main", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"storage":{"volumeClaimTemplate":{"spec":{"storageClassName":"%s","resources":{"requests":{"storage":"1Gi"}}}}}}}`, s.Namespace))
	framework.Await(l, "prometheus-main", "is another one", func(set *appsv1.StatefulSet) bool { return set.UID != before.UID && whole(1)(set) })
	monitored(s, 1, "v3.5.0")

	l.Kubectl("delete", "prometheus,alertmanager", "main", "--timeout=60s")
	for _, side := range []*framework.Side{l, s.East, s.West} {
		framework.AwaitList(side, "", "no StatefulSet is left", expect.Nothing[*appsv1.StatefulSet])
		framework.AwaitList(side, "", "no Secret is left", expect.Nothing[*corev1.Secret])
		framework.AwaitList(side, "", "no Service is left", expect.Nothing[*corev1.Service])
		framework.AwaitList(side, "", "no pod is left", expect.Nothing[*corev1.Pod])
	}
}

// monitored waits until the operator says that so many replicas of that version are available.
func monitored(s *framework.Scenario, replicas int, version string) {
	s.Helper()
	s.Logical.Poll("the operator says that all is well", func() error {
		got := s.Logical.Kubectl("get", "prometheus", "main", "-o", "jsonpath={.metadata.generation} {.status.availableReplicas} "+
			`{.status.updatedReplicas} {range .status.conditions[?(@.type=="Available")]}{.observedGeneration} {.status}{end}`)
		var generation, available, updated, observed int
		var status string
		if _, err := fmt.Sscan(got, &generation, &available, &updated, &observed, &status); err != nil {
			return fmt.Errorf("status %q: %w", got, err)
		}
		if observed != generation || available != replicas || updated != replicas || status != "True" {
			return fmt.Errorf("status %q, want %d replicas", got, replicas)
		}
		return nil
	})
	framework.AwaitList(s.Logical, "prometheus=main", "run the version", withImage("quay.io/prometheus/prometheus:"+version, replicas))
}

// prometheusWebhooks runs the operator's webhooks, has the API server call them by URL, and checks that it does.
func prometheusWebhooks(s *framework.Scenario) {
	s.Helper()
	l := s.Logical
	certificate, key, authority := certificateFiles(s.T)
	port := s.FreePort()
	l.StartOperator(s.Environment.Dir, tools.PrometheusAdmission, fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port),
		"--web.enable-tls=true", "--web.cert-file="+certificate, "--web.key-file="+key, "--web.client-ca-file=")
	bundle := base64.StdEncoding.EncodeToString(authority)
	name := "e2e-" + s.Namespace
	l.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: prometheusrulevalidate.monitoring.coreos.com
  clientConfig: {url: "https://127.0.0.1:%[2]d/admission-prometheusrules/validate", caBundle: %[3]s}
  rules:
  - {apiGroups: [monitoring.coreos.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [prometheusrules]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, port, bundle))
	s.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "validatingwebhookconfiguration", name) })
	l.Poll("a wrong rule is refused by the webhook", func() error {
		r := l.TryInput(`
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: wrong}
spec: {groups: [{name: web, rules: [{alert: Down, expr: "up ==="}]}]}
`, "create", "--dry-run=server", "-f", "-")
		return refusedFor(r, "could not parse expression")
	})

	l.Kubectl("patch", "crd", "alertmanagerconfigs.monitoring.coreos.com", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1beta1","v1alpha1"],`+
			`"clientConfig":{"url":"https://127.0.0.1:%d/convert","caBundle":"%s"}}}}}`, port, bundle))
	l.Apply(`
apiVersion: monitoring.coreos.com/v1alpha1
kind: AlertmanagerConfig
metadata: {name: routes}
spec:
  route: {receiver: nobody, matchers: [{name: severity, value: page.*, regex: true}]}
  receivers: [{name: nobody}]
`)
	l.Poll("it is converted by the webhook", func() error {
		got := l.Kubectl("get", "alertmanagerconfigs.v1beta1.monitoring.coreos.com", "routes", "-o", "jsonpath={.spec.route.matchers[0].matchType}")
		if got != "=~" {
			return fmt.Errorf("the match type is %q", got)
		}
		return nil
	})
	l.Kubectl("delete", "alertmanagerconfig", "routes")
}

// refusedFor is an error unless a command was refused with that phrase.
func refusedFor(r framework.Result, phrase string) error {
	if r.Code == 0 || !strings.Contains(r.Stderr, phrase) {
		return fmt.Errorf("%s", r)
	}
	return nil
}

// certificateFiles writes a certificate for loopback and its key, and returns their paths and the authority.
func certificateFiles(t *testing.T) (certificate, key string, authority []byte) {
	t.Helper()
	pair, authority := framework.SelfSigned(t)
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, data := range map[string][]byte{certificate: authority, key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key, authority
}
