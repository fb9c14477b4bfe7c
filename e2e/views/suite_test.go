// Package views tests the logical cluster as its clusters are to see it: what is read and written through the view of each, and who may.
package views

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

var suite = framework.NewSuite()

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// deployer makes a ServiceAccount of the namespace that may edit there and use the views of clusters.
func deployer(s *framework.Scenario, clusters ...string) {
	s.Helper()
	s.Logical.Kubectl("create", "serviceaccount", "deployer")
	s.Logical.Kubectl("create", "rolebinding", "deployer", "--clusterrole=edit", "--serviceaccount="+s.Namespace+":deployer")
	role := "views-" + s.Namespace
	named := ""
	if len(clusters) > 0 {
		named = ", resourceNames: [" + strings.Join(clusters, ", ") + "]"
	}
	// kubectl knows which verbs there are, and makes no roles with others.
	s.Logical.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + role + "}\n" +
		"rules: [{apiGroups: [manifold.dev], resources: [clusters/view], verbs: [use]" + named + "}]\n")
	s.Logical.Kubectl("create", "clusterrolebinding", role, "--clusterrole="+role, "--serviceaccount="+s.Namespace+":deployer")
	s.Cleanup(func() {
		ctx, cancel := framework.AfterTest()
		defer cancel()
		roles := s.Environment.Logical.Kube.RbacV1()
		if err := roles.ClusterRoleBindings().Delete(ctx, role, deleteNow); err != nil {
			s.Error(err)
		}
		if err := roles.ClusterRoles().Delete(ctx, role, deleteNow); err != nil {
			s.Error(err)
		}
	})
}

// through returns the logical cluster as a cluster is to see it, for the deployer.
func through(s *framework.Scenario, cluster string) *framework.Side {
	s.Helper()
	file := filepath.Join(s.TempDir(), cluster+".kubeconfig")
	s.Logical.CLI("kubeconfig", "--cluster", cluster, "--serviceaccount", "deployer", "--file", file)
	view := s.Logical.As(file)
	view.Poll("the rights count", func() error { return framework.Failure(view.Try("get", "configmaps")) })
	return view
}

// plain returns the path of a kubeconfig of a view without its view: the same token at the logical cluster itself.
func plain(s *framework.Scenario, view *framework.Side, cluster, instead string) *framework.Side {
	s.Helper()
	content, err := os.ReadFile(view.Kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "plain.kubeconfig")
	changed := strings.ReplaceAll(string(content), "/clusters/"+cluster+"\n", instead+"\n")
	if changed == string(content) {
		s.Fatalf("the kubeconfig leads to no view of %s: %s", cluster, content)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		s.Fatal(err)
	}
	return s.Logical.As(file)
}
