package life

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// dirOfJoined is the folder of plugins of a logical cluster that has a cluster, which runs beside the other one.
var dirOfJoined = filepath.Join(filepath.Dir(dir), "joined")

var joined = framework.NewShared(framework.Options{
	Clusters: []string{"east"}, ManifoldArgs: []string{"--plugins-dir", dirOfJoined, "--plugins-uid-range=58000-58999"},
})

// awaitTargets waits until a plugin answers that was started with some targets, and shows how clusters became targets.
func awaitTargets(s *framework.Scenario, name, reason string, want ...string) {
	s.Helper()
	await(s, name, fmt.Sprintf("has the targets %v", want), func(of v1alpha1.PluginStatus, ready bool, _, _ string) bool {
		condition := meta.FindStatusCondition(of.Conditions, v1alpha1.PluginTargetsReady)
		return ready && slices.Equal(of.Targets, want) && condition != nil && condition.Reason == reason
	})
}

func TestAPluginReachesClustersByTheRightsOfAServiceAccountAlone(t *testing.T) {
	s := framework.NewScenario(t, joined.Get(t))
	add(s, "deploys", "{stages: [DEPLOYS_SYNC]}",
		"  deployTargets: [{name: all, clusterSelector: {}, serviceAccountRef: {namespace: "+s.Namespace+", name: deployer}}]")
	awaitTargets(s, "deploys", v1alpha1.PluginReasonAccountMissing)

	s.Logical.Kubectl("create", "serviceaccount", "deployer")
	s.Logical.Kubectl("create", "rolebinding", "deployer", "--clusterrole=edit", "--serviceaccount="+s.Namespace+":deployer")
	awaitTargets(s, "deploys", v1alpha1.PluginReasonComplete, "east")
	kubeconfig := filepath.Join(dirOfJoined, "homes", "deploys", "east.kubeconfig")
	view := s.Logical.As(kubeconfig)
	refused := view.Try("get", "deployments")
	if refused.Code == 0 || !strings.Contains(refused.Stderr, "Forbidden") {
		t.Errorf("without the right to the view: %s", refused)
	}
	s.Logical.Kubectl("create", "clusterrolebinding", "views-"+s.Namespace, "--clusterrole=manifold:use-views", "--serviceaccount="+s.Namespace+":deployer")
	t.Cleanup(func() { s.Environment.Cleanup(t, "delete", "clusterrolebinding", "views-"+s.Namespace) })
	view.Poll("the rights count", func() error { return framework.Failure(view.Try("get", "deployments")) })
	view.Kubectl("create", "configmap", "settings", "--from-literal=a=b")
	if got := s.Logical.Kubectl("get", "configmap", "settings", "-o", "jsonpath={.metadata.annotations}{.metadata.labels}"); !strings.Contains(got, `"manifold.dev/clusters":"east"`) {
		t.Errorf("what the plugin makes is not pinned to its cluster: %s", got)
	}
	if other := view.Try("get", "deployments", "--namespace=default"); other.Code == 0 || !strings.Contains(other.Stderr, "forbidden") {
		t.Errorf("in another namespace: %s", other)
	}

	s.Logical.Kubectl("delete", "serviceaccount", "deployer")
	awaitTargets(s, "deploys", v1alpha1.PluginReasonAccountMissing)
	for _, file := range []string{kubeconfig, filepath.Join(filepath.Dir(kubeconfig), "east.token")} {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", file, err)
		}
	}
}
