package identity

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// delivers is what the controllers of delivery do with the kinds of their own, anywhere.
func delivers() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		may("get,list,watch,update,patch", delivery.GroupName, "applications"), // our finalizer
		may("update,patch", delivery.GroupName, "applications/status", "releases/status"),
		may("get,list,watch,create,update,patch,delete", delivery.GroupName, "applicationrevisions", "releases"),
		may("list,create,update,delete", delivery.GroupName, "releaselogparts"),
		may("list,watch", "gateway.networking.k8s.io", "httproutes"), // whose weights are set
		may("list,watch", "networking.istio.io", "virtualservices"),
	}
}

// contents are the rules for what applications consist of: the kinds that ClusterRole "edit" has, those that send traffic, and the policies by
// which variants are placed. There is none for what gives rights, and none for what is in no namespace: whoever may write Applications
// of a namespace gets at neither by them. Of Istio's kinds, which can take over the hosts of other namespaces, none is made: a VirtualService that is
// there is only told what clusters hold otherwise.
var contents = func() []rbacv1.PolicyRule {
	const write = "get,list,create,update,patch,delete"
	out := []rbacv1.PolicyRule{
		may("get", corev1.GroupName, "pods/log"), // what scripts have written
		may(write, "gateway.networking.k8s.io", "httproutes"),
		may("get,patch", "networking.istio.io", "virtualservices"),
		may(write, v1alpha1.GroupName, "placementpolicies"),
	}
	out = append(out, accounts...)
	for _, kind := range contained.Kinds() {
		out = append(out, may(write, kind.Resource.Group, kind.Resource.Resource))
	}
	return out
}()

// accounts are the rules for being any ServiceAccount.
var accounts = []rbacv1.PolicyRule{
	may(impersonate+serviceAccountMode, authenticationv1.GroupName, "serviceaccounts"),
	may("impersonate", corev1.GroupName, "serviceaccounts"),
}

// copied are the rules for what copies of revisions consist of, and for what sends requests to them. An ApplicationDeployment publishes hosts, so whoever may
// write one makes Gateways and VirtualServices in its namespace; hosts of other namespaces are taken over within the mesh by none of them.
var copied = []rbacv1.PolicyRule{
	may("get,create,patch,delete", corev1.GroupName, "configmaps", "secrets", "services"),
	may("get,create,patch,delete", appsv1.GroupName, "deployments", "statefulsets"),
	may("get,create,patch,delete", networkingv1.GroupName, "ingresses"),
	may("get,create,patch,delete", "networking.istio.io", "virtualservices", "gateways"),
	may("create,update,delete", v1alpha1.GroupName, "placementpolicies"),
}

// deploysRevisions allows to write copies in the namespaces that go to clusters.
func deploysRevisions(a authorizer.Attributes) bool {
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || a.GetNamespace() == "" {
		return false
	}
	return rbac.RulesAllow(a, copied...)
}

// What constrained impersonation asks for: who is impersonated, and what is done by his name.
const (
	impersonate        = "impersonate"
	serviceAccountMode = ":serviceaccount"
	impersonateOn      = impersonate + "-on" + serviceAccountMode + ":"
)

// deliversContents allows to write contents in the namespaces that go to clusters, and to be any ServiceAccount of those. An Application that
// names one has no more rights than that, wherever the objects are.
func deliversContents(a authorizer.Attributes) bool {
	if strings.HasPrefix(a.GetVerb(), impersonateOn) {
		return true // as a ServiceAccount, whose rights are asked for next
	}
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || a.GetNamespace() == "" {
		return false
	}
	return rbac.RulesAllow(a, contents...)
}

// promotes allows to be any ServiceAccount of the namespaces that go to clusters. A promotion writes into targets as the one that its pipeline names.
func promotes(a authorizer.Attributes) bool {
	if strings.HasPrefix(a.GetVerb(), impersonateOn) {
		return true // as a ServiceAccount, whose rights are asked for next
	}
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || a.GetNamespace() == "" {
		return false
	}
	return rbac.RulesAllow(a, accounts...)
}

// asksForTokens allows to ask for tokens of ServiceAccounts of the namespaces that go to clusters, which Plugins name. What calls plugins has no such right.
func asksForTokens(a authorizer.Attributes) bool {
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || a.GetNamespace() == "" {
		return false
	}
	return rbac.RulesAllow(a, tokens)
}

// tokens is the rule for tokens of ServiceAccounts.
var tokens = may("create", corev1.GroupName, "serviceaccounts/token")
