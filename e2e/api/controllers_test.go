package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// TestTheControllersOfAControlPlaneWork is about the stock controllers that run inside.
func TestTheControllersOfAControlPlaneWork(t *testing.T) {
	s := suite.Scenario(t)
	t.Run("a namespace gets its ServiceAccount and the authority", func(t *testing.T) {
		s := s.Subtest(t)
		framework.Await(s.Logical, "default", "is there", framework.Exists[*corev1.ServiceAccount])
		framework.Await(s.Logical, "kube-root-ca.crt", "holds the authority of the kubeconfig", func(m *corev1.ConfigMap) bool {
			return strings.TrimSpace(m.Data["ca.crt"]) == strings.TrimSpace(string(s.Logical.Config.CAData))
		})
	})
	t.Run("a Secret for a token gets one", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply("apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n  annotations: {kubernetes.io/service-account.name: default}\n" +
			"type: kubernetes.io/service-account-token\n")
		framework.Await(s.Logical, "token", "holds a token", func(secret *corev1.Secret) bool {
			return len(secret.Data["token"]) > 0 && len(secret.Data["ca.crt"]) > 0
		})
	})
	t.Run("what belongs to something deleted goes too", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("create", "configmap", "owner")
		owner := framework.Await(s.Logical, "owner", "is there", framework.Exists[*corev1.ConfigMap])
		s.Logical.Apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\n  ownerReferences:\n"+
			"  - {apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}\n", owner.UID))
		s.Logical.Kubectl("delete", "configmap", "owner")
		framework.AwaitGone[*corev1.ConfigMap](s.Logical, "owned")
	})
	t.Run("Endpoints written by hand become slices", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply("apiVersion: v1\nkind: Service\nmetadata: {name: outside}\nspec:\n  ports: [{port: 80}]\n",
			"apiVersion: v1\nkind: Endpoints\nmetadata: {name: outside}\nsubsets:\n- ports: [{port: 8080}]\n  addresses: [{ip: 203.0.113.7}]\n")
		framework.AwaitList(s.Logical, "kubernetes.io/service-name=outside", "one has the address",
			func(slices []*discoveryv1.EndpointSlice) bool {
				return len(slices) == 1 && len(slices[0].Endpoints) == 1 && slices[0].Endpoints[0].Addresses[0] == "203.0.113.7"
			})
	})
	t.Run("a quota counts", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("create", "quota", "some", "--hard=count/deployments.apps=1")
		s.Logical.Kubectl("wait", "quota/some", "--for=jsonpath={.status.used.count/deployments\\.apps}=0", "--timeout=60s")
		s.Logical.Apply(manifests.Deployment("one", 0))
		s.Logical.Kubectl("wait", "quota/some", "--for=jsonpath={.status.used.count/deployments\\.apps}=1", "--timeout=60s")
		expect.Refused(t, s.Logical.TryInput(manifests.Deployment("two", 0), "create", "-f", "-"), "exceeded quota: some")
		s.Logical.Kubectl("delete", "quota", "some")
	})
	t.Run("roles are put together", func(t *testing.T) {
		s := s.Subtest(t)
		role := "e2e-" + s.Namespace
		s.Logical.Apply(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: %s\n"+
			"  labels: {rbac.authorization.k8s.io/aggregate-to-view: \"true\"}\nrules:\n- {apiGroups: [%[1]s.example.com], resources: [things], verbs: [get]}\n", role))
		t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "clusterrole", role) })
		s.Logical.Poll("viewers may see things", func() error {
			if rules := s.Logical.Kubectl("get", "clusterrole", "view", "-o", "yaml"); !strings.Contains(rules, role+".example.com") {
				return errors.New(rules)
			}
			return nil
		})
	})
	t.Run("an approved request for a certificate is signed", func(t *testing.T) {
		s := s.Subtest(t)
		name := "e2e-" + s.Namespace
		requests := s.Environment.Logical.Kube.CertificatesV1().CertificateSigningRequests()
		_, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: signingRequest(t, "alice"), SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "csr", name) })
		s.Logical.Kubectl("certificate", "approve", name)
		s.Logical.Kubectl("wait", "csr/"+name, "--for=jsonpath={.status.certificate}", "--timeout=60s")
	})
}

func signingRequest(t *testing.T, user string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestAnEvictedPodIsEvictedWhereItRuns(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 3), "east,west"))
	expect.RolledOut(s, "web", 3)
	pods := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(3))
	s.Logical.Kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
	s.Logical.Kubectl("wait", "pdb/web", "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=60s")

	evicted := pods[0]
	err := s.Environment.Logical.Kube.PolicyV1().Evictions(s.Namespace).Evict(t.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name, Namespace: s.Namespace}})
	if err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone[*corev1.Pod](s.Side(evicted.Spec.NodeName), evicted.Name)
	framework.AwaitList(s.Logical, "app=web", "another one has taken its place", func(now []*corev1.Pod) bool {
		return expect.ReadyPods(3)(now) && !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == evicted.UID })
	})
}

func TestTheBinaryIsKubectlToo(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"))
	framework.Await(s.Logical, "web", "is rolled out", func(d *appsv1.Deployment) bool { return expect.Available(1)(d) })
	expect.Says(t, s.Logical.CLI("kubectl", "get", "pods"), "web-", "Running")
	expect.Says(t, s.Logical.CLI("kubectl", "rollout", "status", "deployment/web"), "successfully rolled out")
	if r := s.Logical.TryCLI("kubectl", "get", "deployment", "nobody"); r.Code != 1 {
		t.Errorf("an error of the embedded kubectl: %s", r)
	}
}
