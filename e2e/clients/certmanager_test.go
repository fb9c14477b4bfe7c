package clients

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

const certificates = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: authority}
spec: {isCA: true, commonName: authority, secretName: authority, issuerRef: {name: self}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority}
spec: {ca: {secretName: authority}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, dnsNames: [web.example.com], issuerRef: {name: authority}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        volumeMounts: [{name: tls, mountPath: /tls}]
      volumes: [{name: tls, secret: {secretName: web-tls}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, annotations: {cert-manager.io/issuer: authority}}
spec:
  tls: [{hosts: [web.example.com], secretName: ingress-tls}]
  rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`

// cert-manager makes Secrets of its custom resources and of annotated Ingresses. They reach the clusters that run what uses them, and the key
// of the authority stays above.
func TestCertManager(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	l := s.Logical
	s.InstallCRDs(tools.CertManager, "deploy/crds/crd-*.yaml")
	operator := l.StartOperator(s.Environment.Dir, tools.CertManager, "--kubeconfig="+l.Kubeconfig, "--namespace="+s.Namespace,
		"--leader-election-namespace="+s.Namespace, fmt.Sprintf("--metrics-listen-address=127.0.0.1:%d", s.FreePort()))
	awaitLeader(s, "cert-manager-controller")
	certManagerWebhook(s)

	l.Apply(certificates)
	l.Kubectl("wait", "certificate", "--all", "--for=condition=Ready", "--timeout=60s")
	below := s.Side(onlyCluster(s, expect.RolledOut(s, "web", 1)))
	framework.Await(below, "web", "has its certificate beside it", framework.Exists[*networkingv1.Ingress])
	framework.Await(below, "ingress-tls", "was made for the Ingress", certified)
	first := framework.Await(below, "web-tls", "was made", certified)
	l.Kubectl("get", "secret", "authority")
	if got := below.Kubectl("get", "secret", "authority", "--ignore-not-found"); got != "" {
		t.Errorf("the key of the authority has left the logical cluster: %s", got)
	}

	// Another name is another certificate, and a deleted one is made anew, also after the operator has crashed.
	l.Kubectl("patch", "certificate", "web", "--type=merge", "-p", `{"spec":{"dnsNames":["www.example.com"]}}`)
	second := framework.Await(below, "web-tls", "has another certificate", otherThan(first))
	operator.Kill()
	l.Kubectl("delete", "secret", "web-tls") // the certificate in the next one may be the same, if the operator was not done with it
	framework.AwaitGone[*corev1.Secret](below, "web-tls")
	operator.Restart()
	framework.Await(below, "web-tls", "is made anew", func(secret *corev1.Secret) bool {
		return certified(secret) && secret.UID != second.UID
	})

	l.Kubectl("delete", "ingress", "web")
	l.Poll("the Certificate of the Ingress goes with it", func() error {
		if got := l.Kubectl("get", "certificate", "ingress-tls", "--ignore-not-found"); got != "" {
			return fmt.Errorf("it is there: %s", got)
		}
		return nil
	})
	framework.AwaitGone[*corev1.Secret](below, "ingress-tls")
}

func certified(secret *corev1.Secret) bool { return len(secret.Data[corev1.TLSCertKey]) > 0 }

func otherThan(before *corev1.Secret) func(*corev1.Secret) bool {
	return func(now *corev1.Secret) bool {
		return certified(now) && !bytes.Equal(now.Data[corev1.TLSCertKey], before.Data[corev1.TLSCertKey])
	}
}

// certManagerWebhook runs the operator's webhook, which makes an authority of its own and keeps it in a Secret, and has the API server call it.
func certManagerWebhook(s *framework.Scenario) {
	s.Helper()
	l := s.Logical
	port := s.FreePort()
	l.StartOperator(s.Environment.Dir, tools.CertManagerWebhook, "--kubeconfig="+l.Kubeconfig, fmt.Sprintf("--secure-port=%d", port),
		fmt.Sprintf("--healthz-port=%d", s.FreePort()), "--dynamic-serving-ca-secret-namespace="+s.Namespace,
		"--dynamic-serving-ca-secret-name=webhook", "--dynamic-serving-dns-names=localhost")
	secret := framework.Await(l, "webhook", "has an authority", certified)
	name := "e2e-" + s.Namespace
	l.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: webhook.cert-manager.io
  clientConfig: {url: "https://localhost:%[2]d/validate", caBundle: %[3]s}
  rules:
  - {apiGroups: [cert-manager.io, acme.cert-manager.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ["*/*"]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: webhook.cert-manager.io
  clientConfig: {url: "https://localhost:%[2]d/mutate", caBundle: %[3]s}
  rules:
  - {apiGroups: [cert-manager.io, acme.cert-manager.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ["*/*"]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, port, base64.StdEncoding.EncodeToString(secret.Data["ca.crt"])))
	s.Cleanup(func() {
		s.Environment.Cleanup(s.T, "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", name)
	})
	l.Poll("a Certificate without a name is refused by the webhook", func() error {
		return refusedFor(l.TryInput(`
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: wrong}
spec: {secretName: wrong, issuerRef: {name: self}}
`, "create", "--dry-run=server", "-f", "-"), "at least one of commonName")
	})
}
