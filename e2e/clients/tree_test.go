package clients

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestTreeShowsAWorkloadWithAllThatBelongsToIt(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.WebService, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
`, manifests.Edited(manifests.Pinned(manifests.Deployment("web", 4), "east,west"), func(d *appsv1.Deployment) {
		optional := true
		for _, name := range []string{"settings", "forgotten"} {
			d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional},
			})
		}
	}))
	s.Logical.Kubectl("autoscale", "deployment", "web", "--min=4", "--max=5")
	expect.RolledOut(s, "web", 4)
	s.Logical.Poll("the tree shows all that is ready", func() error {
		return framework.Contains(squeezed(s.Logical.CLI("tree", "deployment/web")),
			"Deployment "+s.Namespace+"/web east,west 4/4", "in east 2/2", "in west 2/2", "ReplicaSet web-", "revision 1",
			"2 Pods east 2/2 2 Running", "2 Pods west 2/2 2 Running", "ConfigMap settings east,west", "ConfigMap forgotten missing, but optional",
			"Service web east,west ClusterIP", "EndpointSlice web-", "HorizontalPodAutoscaler web")
	})
	pods := framework.AwaitList(s.Logical, "app=web", "all pods are ready", expect.ReadyPods(4))
	all := squeezed(s.Logical.CLI("tree", "deployment", "web", "--all"))
	for _, pod := range pods {
		expect.Says(t, all, "Pod "+pod.Name+" "+pod.Spec.NodeName+" 1/1 Running")
	}
	expect.Says(t, squeezed(s.Logical.CLI("tree", "configmap/settings")), "ConfigMap "+s.Namespace+"/settings east,west", "needed by Deployment web east,west 4/4")
	expect.Says(t, squeezed(s.Logical.CLI("tree", "svc/web")), "leads to Deployment web east,west 4/4")

	var tree struct {
		Kind, Name, Health string
		Clusters           []string
	}
	if err := json.Unmarshal([]byte(s.Logical.CLI("tree", "deployment/web", "-o", "json")), &tree); err != nil || tree.Kind != "Deployment" ||
		tree.Name != "web" || tree.Health != "Healthy" || len(tree.Clusters) != 2 {
		t.Errorf("as JSON the root is %+v, %v", tree, err)
	}
	if r := s.Logical.TryCLI("tree", "deployment/web"); r.Stderr != "" {
		t.Errorf("beside the tree it says something: %s", r)
	}
	expect.Refused(t, s.Logical.TryCLI("tree", "deployment/nobody"), "NotFound")
}

// squeezed makes one space of several.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
