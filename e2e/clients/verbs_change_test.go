package clients

import (
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// changingVerbs change objects that are there.
var changingVerbs = []verb{
	{"set image, env, resources and serviceaccount", setFields},
	{"set selector, and label and annotate pods", setMetadata},
	{"patch --subresource=scale and replace --force", patchScale},
	{"apply -k, diff -k and delete -k", kustomize},
	{"rollout restart of DaemonSets and StatefulSets", restartOthers},
	{"apply --prune", applyPrune},
	{"apply --prune --applyset", applySet},
	{"diff --prune", diffPrune},
}

func setFields(s *framework.Scenario) {
	onBoth(s, 4)
	s.Logical.Kubectl("create", "serviceaccount", "robot")
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=color=blue")
	s.Logical.Kubectl("set", "image", "deployment/web", "*=web:2")
	s.Logical.Kubectl("set", "env", "deployment/web", "SHAPE=round")
	s.Logical.Kubectl("set", "env", "deployment/web", "--from=configmap/settings", "--prefix=APP_")
	s.Logical.Kubectl("set", "resources", "deployment/web", "--requests=cpu=20m,memory=32Mi", "--limits=memory=64Mi")
	s.Logical.Kubectl("set", "serviceaccount", "deployment/web", "robot")
	expect.Says(s.T, s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s"), "successfully rolled out")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "has every change", func(d *appsv1.Deployment) bool {
			spec := d.Spec.Template.Spec
			c := spec.Containers[0]
			return c.Image == "web:2" && framework.EnvOf(c, "SHAPE") == "round" && spec.ServiceAccountName == "robot" &&
				c.Resources.Requests.Cpu().String() == "20m" && c.Resources.Limits.Memory().String() == "64Mi"
		})
	}
	for cluster, pod := range oneEach(framework.AwaitList(s.Logical, "app=web", "the new pods are ready", expect.ReadyPods(4))) {
		if got := s.Logical.Kubectl("exec", pod.Name, "--", "sh", "-c", "echo $SHAPE $APP_COLOR"); got != "round blue\n" {
			s.Errorf("in %s the environment is %q, want the one that was set", cluster, got)
		}
	}
	expect.Says(s.T, s.Logical.Kubectl("set", "env", "deployment/web", "--list"), "SHAPE=round", "APP_COLOR from configmap settings")
}

// partOfShop adds the label that apply --prune is told to look for, and leaves the template alone.
func partOfShop(manifest string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Labels["part-of"] = "shop" })
}

const settings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels:
    part-of: shop
data:
  color: blue
`

func applyPrune(s *framework.Scenario) {
	prune := []string{
		"apply", "--prune", "-l", "part-of=shop", "--prune-allowlist=core/v1/ConfigMap", "--prune-allowlist=apps/v1/Deployment", "-f", "-",
	}
	web, api := partOfShop(manifests.Deployment("web", 1)), partOfShop(manifests.Deployment("api", 1))
	s.Logical.KubectlInput(strings.Join([]string{web, api, settings}, "\n---\n"), prune...)
	expect.RolledOut(s, "web", 1)
	expect.RolledOut(s, "api", 1)
	out := s.Logical.KubectlInput(api, prune...)
	expect.Says(s.T, out, "deployment.apps/api unchanged", "deployment.apps/web pruned", "configmap/settings pruned")
	if strings.Contains(out, "api pruned") || strings.Contains(out, "replicaset") {
		s.Errorf("it pruned more than it should:\n%s", out)
	}
	assertPruned(s)
}

// assertPruned checks that Deployment "api" is the one that is left.
func assertPruned(s *framework.Scenario) {
	s.Helper()
	framework.AwaitGone[*appsv1.Deployment](s.Logical, "web")
	framework.AwaitGone[*corev1.ConfigMap](s.Logical, "settings")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*appsv1.Deployment](side, "web")
		framework.AwaitList(side, "app=web", "its pods are gone", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	}
	expect.RolledOut(s, "api", 1)
}

// An ApplySet finds its members by a label that kubectl puts on them; projections carry it, mirrors of ReplicaSets and pods do not.
func applySet(s *framework.Scenario) {
	logical := s.Logical.WithEnv("KUBECTL_APPLYSET=true")
	prune := []string{"apply", "--prune", "--applyset=shop", "-f", "-"}
	web, api := manifests.Deployment("web", 1), manifests.Deployment("api", 1)
	logical.KubectlInput(strings.Join([]string{web, api, settings}, "\n---\n"), prune...)
	expect.RolledOut(s, "web", 1)
	expect.RolledOut(s, "api", 1)
	expect.Says(s.T, s.Logical.Kubectl("get", "secret", "shop", "-o", "yaml"), "applyset.kubernetes.io/id", "Deployment.apps")
	expect.Says(s.T, logical.KubectlInput(api, prune...), "deployment.apps/web pruned", "configmap/settings pruned")
	assertPruned(s)
}

func diffPrune(s *framework.Scenario) {
	args := []string{"diff", "--prune", "-l", "part-of=shop", "--prune-allowlist=core/v1/ConfigMap", "-f", "-"}
	web := partOfShop(manifests.Deployment("web", 1))
	s.Logical.Apply(web, settings)
	expect.RolledOut(s, "web", 1)
	if result := s.Logical.TryInput(web+"\n---\n"+settings, args...); result.Code != 0 {
		s.Errorf("what was applied differs: %s", result)
	}
	result := s.Logical.TryInput(web, args...)
	if result.Code != 1 || !strings.Contains(result.Stdout, "-  color: blue") {
		s.Errorf("the ConfigMap that would be pruned does not show: %s", result)
	}
}

func setMetadata(s *framework.Scenario) {
	s.Logical.Apply(manifests.WebService)
	for cluster, pod := range onBoth(s, 2) {
		s.Logical.Kubectl("label", "pod", pod.Name, "color=blue")
		s.Logical.Kubectl("label", "pod", pod.Name, "color=green", "--overwrite")
		s.Logical.Kubectl("annotate", "pod", pod.Name, "note=first")
		s.Logical.Kubectl("annotate", "pod", pod.Name, "note=second", "--overwrite")
		framework.Await(s.Side(cluster), pod.Name, "has both", func(p *corev1.Pod) bool {
			return p.Labels["color"] == "green" && p.Annotations["note"] == "second"
		})
		expect.Refused(s.T, s.Logical.Try("label", "pod", pod.Name, "color=red"), "already has a value")
		s.Logical.Kubectl("label", "pod", pod.Name, "color-")
		framework.Await(s.Side(cluster), pod.Name, "has lost the label", func(p *corev1.Pod) bool { _, has := p.Labels["color"]; return !has })
	}
	s.Logical.Kubectl("set", "selector", "service", "web", "app=nobody")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*corev1.Service](side, "web")
	}
	s.Logical.Kubectl("set", "selector", "service", "web", "app=web")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "web", "is back", framework.Exists[*corev1.Service])
	}
}

func patchScale(s *framework.Scenario) {
	onBoth(s, 2)
	s.Logical.Kubectl("patch", "deployment", "web", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":4}}`)
	expect.RolledOut(s, "web", 4)
	s.Logical.Kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=60s")
	before := framework.ReadDeployment(s, "web")
	s.Logical.KubectlInput(manifests.Pinned(manifests.Deployment("web", 2), "west"), "replace", "--force", "--timeout=60s", "-f", "-")
	expect.RolledOut(s, "web", 2)
	if after := framework.ReadDeployment(s, "web"); after.UID == before.UID {
		s.Error("it is the same object")
	}
	framework.AwaitGone[*appsv1.Deployment](s.East, "web")
	framework.AwaitList(s.West, "app=web", "as many as were asked for", expect.ReadyPods(2))
}

func kustomize(s *framework.Scenario) {
	dir := s.TempDir()
	for name, content := range map[string]string{
		"web.yaml": manifests.Pinned(manifests.Deployment("web", 1), "east,west"),
		"kustomization.yaml": `
resources: [web.yaml]
namePrefix: shop-
images: [{name: web, newTag: "2"}]
replicas: [{name: web, count: 2}]
configMapGenerator:
- name: settings
  literals: [color=blue]
patches:
- target: {kind: Deployment}
  patch: '[{"op":"add","path":"/spec/template/spec/containers/0/envFrom","value":[{"configMapRef":{"name":"settings"}}]}]'
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.Logical.Kubectl("apply", "-k", dir)
	expect.RolledOut(s, "shop-web", 2)
	if result := s.Logical.Try("diff", "-k", dir); result.Code != 0 {
		s.Errorf("what was applied differs: %s", result)
	}
	settings := framework.ReadDeployment(s, "shop-web").Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, settings, "is there", framework.Exists[*corev1.ConfigMap])
	}
	s.Logical.Kubectl("delete", "-k", dir, "--timeout=60s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*appsv1.Deployment](side, "shop-web")
		framework.AwaitGone[*corev1.ConfigMap](side, settings)
	}
}

func restartOthers(s *framework.Scenario) {
	s.Logical.Apply(manifests.DaemonSet("agent", "east,west"), manifests.Database("db", 2, manifests.SetOn("west")))
	for _, workload := range []string{"daemonset/agent", "statefulset/db"} {
		s.Logical.Kubectl("rollout", "status", workload, "--timeout=60s")
		s.Logical.Kubectl("rollout", "restart", workload)
		s.Logical.Kubectl("rollout", "status", workload, "--timeout=60s")
		expect.Says(s.T, s.Logical.Kubectl("rollout", "history", workload), "REVISION", "2")
	}
}
