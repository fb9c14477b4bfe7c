package access

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/hack/stock"
)

// refuseJoin checks that joining is refused, says why, and leaves nothing half made on either side.
func refuseJoin(s *framework.Scenario, name string, args []string, want ...string) {
	s.Helper()
	before := listed(s)
	result := s.Logical.TryCLI(append([]string{"cluster", "join", name}, args...)...)
	expect.Refused(s.T, result, want...)
	if strings.Contains(result.Stdout, "joined") {
		s.Errorf("it is said to have joined: %s", result)
	}
	for _, now := range listed(s) {
		if !strings.Contains(fmt.Sprint(before), now) {
			s.Errorf("%s is half made above", now)
		}
	}
	membership.AwaitNothing(s, s.Side("north"), membership.Managed, membership.Owned(s))
	if _, err := s.Side("north").Kube.CoreV1().Namespaces().Get(s.Context(), v1alpha1.SystemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("there is a namespace %s in the cluster that did not join: %v", v1alpha1.SystemNamespace, err)
	}
}

// listed is what joining makes above: Clusters, credentials, Nodes and Leases.
func listed(s *framework.Scenario) []string {
	s.Helper()
	return strings.Fields(s.Logical.In(v1alpha1.SystemNamespace).Kubectl("get", "clusters,nodes,secrets,leases", "-o", "name"))
}

func TestAJoinThatCannotWorkIsRefusedAndLeavesNothing(t *testing.T) {
	s := suite.Fragile(t)
	north := s.Environment.Clusters["north"].Kubeconfig()
	t.Run("a kubeconfig that is not there", func(t *testing.T) {
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", "/not/there"}, `there is no kubeconfig "/not/there"`)
	})
	t.Run("none at all", func(t *testing.T) {
		refuseJoin(s.Subtest(t), "north", nil, "--cluster-kubeconfig is required")
	})
	for name, test := range map[string]struct{ content, want string }{
		"no YAML":                    {"clusters: [", "does not parse"},
		"something else":             {"just a text", "does not parse"},
		"a list instead of contexts": {"apiVersion: v1\nkind: Config\ncontexts: 1\n", "does not parse"},
		"nothing":                    {"", "has no contexts"},
		"no current context":         {"apiVersion: v1\nkind: Config\ncontexts: [{name: one, context: {cluster: a, user: b}}]\n", "--cluster-context: one"},
	} {
		t.Run("a kubeconfig with "+name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", file}, file, test.want)
		})
	}
	t.Run("a context that is not there", func(t *testing.T) {
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", north, "--cluster-context", "mine"}, `no context "mine"`, "it has: ")
	})
	t.Run("an address where nobody listens", func(t *testing.T) {
		port, err := stock.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("https://127.0.0.1:%d", port)
		file := kubeconfigWith(t, north, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = address })
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", file}, address+" does not answer", "connection refused", file)
	})
	t.Run("an address that is silent", func(t *testing.T) {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := "https://" + listener.Addr().String()
		file := kubeconfigWith(t, north, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = address })
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", file}, address+" does not answer", file)
	})
	t.Run("a server of another authority", func(t *testing.T) {
		file := kubeconfigWith(t, north, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData = s.Logical.Config.CAData
		})
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", file}, "certificate that is not to be trusted", "check the CA")
	})
	t.Run("a credential that nobody knows", func(t *testing.T) {
		file := kubeconfigWith(t, north, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			*u = clientcmdapi.AuthInfo{Token: "nobody's"}
		})
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", file}, "does not know the credential")
	})
	t.Run("missing rights", func(t *testing.T) { testMissingRights(s.Subtest(t)) })
	t.Run("a name that cannot be one", func(t *testing.T) {
		refuseJoin(s.Subtest(t), "North_1", []string{"--cluster-kubeconfig", north}, "is not a valid cluster name")
	})
	t.Run("the logical cluster itself", func(t *testing.T) {
		refuseJoin(s.Subtest(t), "north", []string{"--cluster-kubeconfig", s.Logical.Kubeconfig}, "is the logical cluster itself")
	})
	t.Run("a taken name", func(t *testing.T) { testTakenName(s.Subtest(t), north) })
	t.Run("a cluster that has joined under another name", func(t *testing.T) {
		s := s.Subtest(t)
		east := s.Environment.Clusters["east"].Kubeconfig()
		before := membership.Objects(t.Context(), t, s.East.API, membership.Managed)
		refuseJoin(s, "other", []string{"--cluster-kubeconfig", east}, `it has joined as "east" already`, "manifold cluster remove east")
		if after := membership.Objects(t.Context(), t, s.East.API, membership.Managed); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("what joining made in east was %v and is %v", before, after)
		}
		if c := membership.Get(s, "east"); !membership.Readiness(metav1.ConditionTrue)(c) {
			t.Errorf("east is not ready any more: %v", c.Status.Conditions)
		}
	})
	t.Run("a join that fails halfway", func(t *testing.T) { testHalfway(s.Subtest(t), north) })
}

// testMissingRights joins as ServiceAccounts that may too little.
func testMissingRights(s *framework.Scenario) {
	below := s.Side("north").In("default")
	for name, test := range map[string]struct {
		role []string
		want []string
	}{
		"viewer": {
			[]string{"--verb=get,list,watch", "--resource=*.*"},
			[]string{"create,patch,delete,update namespaces", "create,patch,delete clusterroles.rbac.authorization.k8s.io", "create,patch,delete serviceaccounts in namespace manifold-system", "create,update,patch,delete deployments.apps"},
		},
		"operator": {
			[]string{"--verb=*", "--resource=*.,*.apps,*.rbac.authorization.k8s.io"},
			[]string{"get,create,patch,delete validatingadmissionpolicies.admissionregistration.k8s.io", "get,create,patch,delete validatingadmissionpolicybindings.admissionregistration.k8s.io"},
		},
		"nobody": {
			nil,
			[]string{"get,create,patch,delete,list,watch,update namespaces", "get,list,watch,create,update,patch,delete pods", "get,list,watch nodes"},
		},
	} {
		s.Run(name, func(t *testing.T) {
			s := s.Subtest(t)
			refuseJoin(s, "north", []string{"--cluster-kubeconfig", restricted(s, below, name, test.role)}, append(test.want, "lacks these rights", "use a cluster admin's")...)
		})
	}
}

// restricted returns the kubeconfig of a ServiceAccount in a cluster whose ClusterRole is made with these arguments.
func restricted(s *framework.Scenario, below *framework.Side, name string, role []string) string {
	s.Helper()
	below.Kubectl("create", "serviceaccount", name)
	s.Cleanup(func() {
		for _, args := range [][]string{{"serviceaccount", name}, {"clusterrole,clusterrolebinding", name}} {
			s.Environment.CleanupIn(s.T, below.API, append([]string{"delete", "--ignore-not-found"}, args...)...)
		}
	})
	token := strings.TrimSpace(below.Kubectl("create", "token", name))
	file := kubeconfigWith(s.T, below.Kubeconfig, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		*u = clientcmdapi.AuthInfo{Token: token}
	})
	if role == nil {
		return file
	}
	below.Kubectl(append([]string{"create", "clusterrole", name}, role...)...)
	below.Kubectl("create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount=default:"+name)
	below.Poll("the role counts", func() error { return framework.Failure(below.As(file).Try("get", "pods")) })
	return file
}

func testTakenName(s *framework.Scenario, north string) {
	secret := func() *corev1.Secret {
		found, err := s.Logical.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(s.Context(), "cluster-east", metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		return found
	}
	before, credential := membership.Get(s, "east"), secret()
	refuseJoin(s, "east", []string{"--cluster-kubeconfig", north, "--label", "mine=yes"}, "the name is taken by another cluster", "choose another name")
	after := membership.Get(s, "east")
	if after.UID != before.UID || after.Status.UID != before.Status.UID || after.Labels["mine"] != "" || after.Generation != before.Generation {
		s.Errorf("the cluster of that name was\n%v\nand is\n%v", before, after)
	}
	if secret().ResourceVersion != credential.ResourceVersion {
		s.Error("the credential of the cluster of that name was changed")
	}
}

// testHalfway has the cluster refuse one of the last things that joining makes there.
func testHalfway(s *framework.Scenario, north string) {
	below := s.Side("north")
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, below.API, "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "no-bindings", "--ignore-not-found")
	})
	below.Apply(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: no-bindings
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [rbac.authorization.k8s.io]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [clusterrolebindings]
  validations:
  - expression: "false"
    message: nobody makes bindings here
`, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: no-bindings
spec:
  policyName: no-bindings
  validationActions: [Deny]
`)
	bind := func() framework.Result {
		return below.Try("create", "clusterrolebinding", "mine", "--clusterrole=view", "--user=me", "--dry-run=server")
	}
	below.Poll("the policy counts", func() error {
		if result := bind(); !strings.Contains(result.Stderr, "nobody makes bindings here") {
			return fmt.Errorf("it was not denied: %s", result)
		}
		return nil
	})
	refuseJoin(s, "north", []string{"--cluster-kubeconfig", north}, "ClusterRoleBinding", "nobody makes bindings here", "what was made has been taken back")
	// An API server drops a policy only when its watch tells so, and the next test joins this cluster.
	below.Kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "no-bindings")
	below.Poll("the policy counts no longer", func() error { return framework.Failure(bind()) })
}

// kubeconfigWith writes a kubeconfig that leads where another one does, with a change.
func kubeconfigWith(t *testing.T, of string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(of)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
