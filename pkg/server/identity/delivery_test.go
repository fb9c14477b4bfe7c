package identity

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPromotionsImpersonateServiceAccountsAndWriteNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		verb, group, resource, namespace string
		want                             bool
	}{
		"a ServiceAccount":                     {"impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "shop", true},
		"what is done by its name":             {"impersonate-on:serviceaccount:patch", "apps", "deployments", "shop", true},
		"no ServiceAccount of Kubernetes' own": {"impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "kube-system", false},
		"nor one of ours":                      {"impersonate", "", "serviceaccounts", v1alpha1.SystemNamespace, false},
		"no user":                              {"impersonate", "", "users", "", false},
		"nothing by the name of somebody else": {"impersonate-on:user-info:patch", "apps", "deployments", "shop", false},
		"no workload by rights of its own":     {"patch", "apps", "deployments", "shop", false},
		"no pipeline":                          {"patch", "pipelines.weave.works", "pipelines", "shop", false},
		"no Secret":                            {"get", "", "secrets", "shop", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allowed(t, v1alpha1.PromotionsUser, test.verb, test.group, test.resource, test.namespace, "web"); got != test.want {
				t.Errorf("allowed %t, want %t", got, test.want)
			}
		})
	}
}

func TestDeliveryImpersonatesServiceAccountsOfTheNamespacesThatGoToClusters(t *testing.T) {
	for name, test := range map[string]struct {
		verb, group, resource, namespace string
		want                             bool
	}{
		"a ServiceAccount":                          {"impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "shop", true},
		"by the old way":                            {"impersonate", "", "serviceaccounts", "shop", true},
		"what is done by its name":                  {"impersonate-on:serviceaccount:patch", "apps", "deployments", "shop", true},
		"also to what is in no namespace":           {"impersonate-on:serviceaccount:patch", "", "namespaces", "", true},
		"no ServiceAccount of Kubernetes' own":      {"impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "kube-system", false},
		"nor one of them by the old way":            {"impersonate", "", "serviceaccounts", "kube-system", false},
		"nor one of ours":                           {"impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", v1alpha1.SystemNamespace, false},
		"no user":                                   {"impersonate:user-info", "authentication.k8s.io", "users", "", false},
		"nor one by the old way":                    {"impersonate", "", "users", "", false},
		"no group":                                  {"impersonate", "", "groups", "", false},
		"nothing by the name of somebody else":      {"impersonate-on:user-info:patch", "apps", "deployments", "shop", false},
		"content in a namespace":                    {"patch", "apps", "deployments", "shop", true},
		"none where Kubernetes' own is":             {"patch", "apps", "deployments", "kube-system", false},
		"no credentials of clusters":                {"get", "", "secrets", v1alpha1.SystemNamespace, false},
		"nothing that gives rights":                 {"create", "rbac.authorization.k8s.io", "rolebindings", "shop", false},
		"nothing in no namespace":                   {"create", "", "namespaces", "", false},
		"no status, which clusters report":          {"update", "apps", "deployments/status", "shop", false},
		"no scale, which others may be bound to":    {"update", "apps", "deployments/scale", "shop", false},
		"no token of a ServiceAccount":              {"create", "", "serviceaccounts/token", "shop", false},
		"no approval, which is for people to give":  {"create", "delivery.manifold.dev", "releases/approve", "shop", false},
		"the status of a Release, which is its own": {"update", "delivery.manifold.dev", "releases/status", "shop", true},
		"what scripts have written":                 {"get", "", "pods/log", "shop", true},
		"nothing in their containers":               {"create", "", "pods/exec", "shop", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allowed(t, v1alpha1.DeliveryUser, test.verb, test.group, test.resource, test.namespace, "web"); got != test.want {
				t.Errorf("allowed %t, want %t", got, test.want)
			}
		})
	}
}
