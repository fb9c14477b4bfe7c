package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// askAbove has clusters ask the logical one about pods until the test ends.
func askAbove(s *framework.Scenario, clusters ...string) {
	s.Helper()
	for _, name := range clusters {
		args := []string{"cluster", "join", name, "--cluster-kubeconfig", s.Environment.Clusters[name].Kubeconfig()}
		s.Cleanup(func() { s.Environment.CleanupCLI(s.T, args...) })
		s.Logical.CLI(append(args, "--pod-webhooks")...)
	}
}

// hooks are a mutating and a validating webhook for pods of a namespace that are registered in the logical cluster.
type hooks struct {
	mu    sync.Mutex
	asked []admissionv1.AdmissionRequest
}

// answer labels new pods and gives them a variable, and refuses those that are labelled refused.
func (h *hooks) answer(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.mu.Lock()
	h.asked = append(h.asked, *request)
	h.mu.Unlock()
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	if pod.Labels["refused"] != "" {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "the webhook does not like " + pod.Labels["app"]}}
	}
	if pod.Labels["admitted"] != "" { // the one that validates
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	patch, kind := fmt.Sprintf(`[
		{"op": "add", "path": "/metadata/labels/admitted", "value": "yes"},
		{"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "CREATOR", "value": %q}]},
		{"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "sidecar:1"}}
	]`, request.UserInfo.Username), admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: &kind}
}

// register serves the webhooks and registers them for the namespace of the scenario, and returns what takes them away.
func (h *hooks) register(s *framework.Scenario, failures string) (unregister func()) {
	s.Helper()
	url, authority := framework.ServeAdmission(s.T, h.answer)
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		s.Logical.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: e2e-%[2]s}
webhooks:
- name: pods.e2e.example.com
  clientConfig: {url: %[3]q, caBundle: %[4]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  failurePolicy: %[5]s
  sideEffects: None
  admissionReviewVersions: [v1]
`, kind, s.Namespace, url, base64.StdEncoding.EncodeToString(authority), failures))
	}
	unregister = func() {
		for _, kind := range []string{"mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
			s.Environment.Cleanup(s.T, "delete", kind, "e2e-"+s.Namespace, "--ignore-not-found")
		}
	}
	s.Cleanup(unregister)
	return unregister
}

func labelledForPods(value string) func(*corev1.Namespace) bool {
	return func(n *corev1.Namespace) bool { return n.Labels[v1alpha1.LabelPodWebhooks] == value }
}

// changedByHooks returns what of a pod is not as the webhooks have made it, "" if all is.
func changedByHooks(p *corev1.Pod, creator string) string {
	if len(p.Spec.Containers) != 2 || p.Labels["admitted"] != "yes" || p.Annotations[v1alpha1.AnnotationAdmitted] != "" && p.Annotations[v1alpha1.AnnotationCluster] != "" {
		return fmt.Sprintf("it has labels %v, annotations %v and %d containers", p.Labels, p.Annotations, len(p.Spec.Containers))
	}
	for _, variable := range p.Spec.Containers[0].Env {
		if variable.Name == "CREATOR" && variable.Value == creator {
			return ""
		}
	}
	return fmt.Sprintf("it has variables %v, and is to have CREATOR=%s", p.Spec.Containers[0].Env, creator)
}

const replicaSetController = "system:serviceaccount:kube-system:replicaset-controller"

func TestPodsOfWorkloadsPassTheWebhooksOfTheLogicalCluster(t *testing.T) {
	s := suite.Fragile(t)
	askAbove(s, "east", "west")
	for _, cluster := range []string{"east", "west"} {
		if got := s.Logical.Kubectl("get", "cluster", cluster, "-o", "jsonpath={.spec.allows.podWebhooks}"); got != "true" {
			t.Errorf("%s asks about pods: %q", cluster, got)
		}
		expect.Says(t, s.Logical.CLI("cluster", "check", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig()), "✓ MutatingWebhookConfiguration manifold-syncer-")
	}
	h := &hooks{}
	unregister := h.register(s, "Fail")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "east,west"))
	expect.RolledOut(s, "web", 4)
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, s.Namespace, "asks about pods", labelledForPods("Fail"))
		for _, pod := range framework.AwaitList(side, "app=web", "has its pods", expect.ReadyPods(2)) {
			if wrong := changedByHooks(pod, replicaSetController); wrong != "" {
				t.Errorf("pod %s of %s: %s", pod.Name, side.Name, wrong)
			}
		}
	}
	for _, pod := range framework.AwaitList(s.Logical, "app=web", "are shown", expect.ReadyPods(4)) {
		if wrong := changedByHooks(pod, replicaSetController); wrong != "" {
			t.Errorf("pod %s as it is shown: %s", pod.Name, wrong)
		}
	}
	shown := framework.AwaitList(s.Logical, "app=web", "are owned", func(all []*appsv1.ReplicaSet) bool { return len(all) == 1 })
	h.mu.Lock()
	for _, request := range h.asked {
		var pod corev1.Pod
		if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
			t.Fatal(err)
		}
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.UID != shown[0].UID || request.Namespace != s.Namespace {
			t.Errorf("the webhook was asked about a pod of %v in %s", owner, request.Namespace)
		}
		if _, marked := pod.Labels[v1alpha1.LabelLogicalCluster]; marked || pod.Spec.NodeName != "" {
			t.Errorf("the webhook was asked about a pod with labels %v on %q", pod.Labels, pod.Spec.NodeName)
		}
	}
	h.mu.Unlock()

	s.Logical.Apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  template:
    metadata: {labels: {app: sums}, annotations: {kwok.x-k8s.io/outcome: stay}}
    spec: {restartPolicy: Never, containers: [{name: sum, image: "sum:1", resources: {requests: {cpu: 10m}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1", resources: {requests: {cpu: 10m}}}]}
`)
	for app, creator := range map[string]string{"sums": "job-controller", "agent": "daemon-set-controller"} {
		for _, pod := range framework.AwaitList(s.Logical, "app="+app, "are shown", func(pods []*corev1.Pod) bool { return len(pods) > 0 && expect.Ready(pods[0]) }) {
			if wrong := changedByHooks(pod, "system:serviceaccount:kube-system:"+creator); wrong != "" {
				t.Errorf("pod %s as it is shown: %s", pod.Name, wrong)
			}
		}
	}

	s.Logical.Apply(manifests.Edited(manifests.Deployment("bad", 1), func(d *appsv1.Deployment) { d.Spec.Template.Labels["refused"] = "yes" }))
	framework.AwaitList(s.Logical, "", "say why there is no pod", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.Reason == "FailedCreate" && strings.Contains(e.Message, "the webhook does not like bad") && e.InvolvedObject.Kind == "ReplicaSet" {
				return true
			}
		}
		return false
	})

	unregister()
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, s.Namespace, "asks no more", labelledForPods(""))
	}
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("plain", 2), "east,west"))
	expect.RolledOut(s, "plain", 2)
	for _, pod := range framework.AwaitList(s.Logical, "app=plain", "are shown", expect.ReadyPods(2)) {
		if len(pod.Spec.Containers) != 1 {
			t.Errorf("pod %s has %d containers, though no webhook is registered", pod.Name, len(pod.Spec.Containers))
		}
	}
}

func TestWhichQuestionsAboutPodsAreAnswered(t *testing.T) {
	s := suite.Fragile(t)
	askAbove(s, "east", "west")
	asking := func(side *framework.Side) []admissionregistrationv1.MutatingWebhook {
		t.Helper()
		all, err := side.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{LabelSelector: membership.Managed})
		if err != nil {
			t.Fatal(err)
		}
		var out []admissionregistrationv1.MutatingWebhook
		for _, found := range all.Items {
			out = append(out, found.Webhooks...)
		}
		return out
	}
	asks := func(side *framework.Side) (url string, client *http.Client) {
		t.Helper()
		found := asking(side)
		if len(found) != 2 {
			t.Fatalf("%s asks by %v", side.Name, found)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(found[0].ClientConfig.CABundle)
		return *found[0].ClientConfig.URL, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	}
	east, client := asks(s.East)
	west, _ := asks(s.West)
	ask := func(url string, body []byte) int {
		t.Helper()
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	question, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Operation: admissionv1.Create},
	})
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndexByte(east, '/') + 1
	for what, test := range map[string]struct {
		url  string
		body []byte
		want int
	}{
		"its own":                      {east, question, http.StatusOK},
		"with another token":           {east[:cut] + "guessed", question, http.StatusForbidden},
		"with that of another cluster": {strings.Replace(west, "/west/", "/east/", 1), question, http.StatusForbidden},
		"of a cluster that is none":    {strings.Replace(east, "/east/", "/nowhere/", 1), question, http.StatusForbidden},
		"without a token":              {east[:cut], question, http.StatusForbidden},
		"of any length":                {east, bytes.Repeat([]byte("x"), 4<<20), http.StatusRequestEntityTooLarge},
		"that is none":                 {east, []byte("{}"), http.StatusBadRequest},
	} {
		if got := ask(test.url, test.body); got != test.want {
			t.Errorf("a question %s is answered with %d, want %d", what, got, test.want)
		}
	}

	s.Logical.CLI("cluster", "rotate", "east", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig())
	if next, _ := asks(s.East); next == east || ask(next, question) != http.StatusOK {
		t.Error("a rotation has not replaced the token by another good one")
	}
	s.Logical.CLI("cluster", "join", "east", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig())
	if left := asking(s.East); len(left) > 0 {
		t.Errorf("the cluster still asks by %v", left)
	}
	s.Logical.Poll("its token is worth nothing", func() error {
		if code := ask(east, question); code != http.StatusForbidden {
			return fmt.Errorf("it is answered with %d", code)
		}
		return nil
	})
}
