package access

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// TestTheRightsOfAClusterAreComparedWithWhatTheyShouldBe changes what joining made.
func TestTheRightsOfAClusterAreComparedWithWhatTheyShouldBe(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	again := membership.Join(s, "north")
	admin := []string{"cluster", "check", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig()}
	name := "manifold-syncer-" + framework.IdentityOf(t, s.Environment)[:8]
	whole := s.Logical.CLI(admin...)
	expect.Says(t, whole, "✓ ClusterRole "+name, "✓ ValidatingAdmissionPolicy "+name, "✓ Other bindings")
	if strings.Contains(whole, "?") || strings.Contains(whole, "✗") {
		t.Errorf("the admin is told\n%s", whole)
	}
	// With what is stored, as far as that may read.
	expect.Says(t, s.Logical.CLI("cluster", "check", "north"), "✓ ClusterRole "+name, "✓ ValidatingAdmissionPolicyBinding "+name+"-accounts", "? Other bindings")

	below := s.Side("north")
	below.Kubectl("patch", "clusterrole", name, "--type=json", "-p",
		`[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["nodes"],"verbs":["delete"]}}]`)
	below.Kubectl("patch", "validatingadmissionpolicybinding", name, "--type=merge", "-p", `{"spec":{"validationActions":["Warn"]}}`)
	below.Kubectl("create", "clusterrolebinding", "more-"+name, "--clusterrole=cluster-admin", "--serviceaccount=manifold-system:"+name)
	s.Cleanup(func() {
		s.Environment.CleanupIn(t, below.API, "delete", "clusterrolebinding", "more-"+name, "--ignore-not-found")
	})
	result := s.Logical.TryCLI("cluster", "check", "north")
	expect.Refused(t, result, "manifold cluster join north")
	expect.Says(t, result.Stdout, "more than needed: delete nodes", "✗ ValidatingAdmissionPolicyBinding "+name, "validationActions")
	result = s.Logical.TryCLI(admin...)
	if result.Code != 1 {
		t.Errorf("it ends with %d, want 1", result.Code)
	}
	expect.Says(t, result.Stdout, "more than needed: delete nodes", "ClusterRoleBinding more-"+name+" gives it ClusterRole cluster-admin")

	below.Kubectl("delete", "clusterrolebinding", "more-"+name)
	s.Logical.CLI(again...)
	s.Logical.CLI(admin...)
}

// TestADryRunOfJoiningIsWhatIsMade has an admin apply what was printed, and the cluster join after that.
func TestADryRunOfJoiningIsWhatIsMade(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	before := listed(s)
	below := s.Side("north")
	text := s.Logical.CLI("cluster", "join", "north", "--dry-run", "--allow-kind", "widgets.example.com", "--allow-volumes", "--pod-security", "baseline")
	if left := membership.Objects(t.Context(), t, below.API, membership.Managed); len(left) > 0 || len(listed(s)) != len(before) {
		t.Fatalf("a dry run made %v", left)
	}
	file := filepath.Join(t.TempDir(), "north.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Cleanup(func() { membership.Dismiss(s, "north") })
	below.In(v1alpha1.SystemNamespace).Kubectl("create", "-f", file)
	made := membership.Objects(t.Context(), t, below.API, membership.Managed)
	membership.Join(s, "north", "--allow-kind", "widgets.example.com", "--allow-volumes", "--pod-security", "baseline")
	// What a token ends with is made with the token.
	after := slices.DeleteFunc(membership.Objects(t.Context(), t, below.API, membership.Managed), func(f membership.Object) bool { return f.Resource.Resource == "secrets" })
	if len(made) != len(after) {
		t.Errorf("applied were %v, joining made %v", made, after)
	}
	for i := range after {
		if i < len(made) && (made[i].UID != after[i].UID || made[i].String() != after[i].String()) {
			t.Errorf("joining made %s, applied was %s", after[i], made[i])
		}
	}
	expect.Says(t, s.Logical.CLI("cluster", "check", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig()), "-kinds", "✓ ClusterRole manifold-syncer-"+framework.IdentityOf(t, s.Environment)[:8]+"-volumes",
		"✓ ValidatingAdmissionPolicyBinding manifold-syncer-"+framework.IdentityOf(t, s.Environment)[:8]+"-pod-security")
}

// TestAClusterThatKeepsPodsToALevelGetsNoOthers has the level stay when the cluster joins again, be missed when it has been removed there, and go
// when it is lifted.
func TestAClusterThatKeepsPodsToALevelGetsNoOthers(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	again := membership.Join(s, "north", "--pod-security", "baseline")
	again = again[:len(again)-2]
	s.Logical.CLI(again...) // which keeps the level
	below := s.Side("north")
	privileged := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	}
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("miner", 1), privileged), "north"), manifests.Pinned(manifests.Deployment("web", 1), "north"))
	expect.RolledOut(s, "web", 1)
	expect.Problem(s, "miner", "ProjectionFailed", "Manifold may not create pods with privileged containers here", "--pod-security=baseline")
	expect.Refused(t, below.Try("get", "deployment", "miner"), "NotFound")

	// What somebody has removed of it is missed, and joining again brings it back.
	name := "manifold-syncer-" + framework.IdentityOf(t, s.Environment)[:8] + "-pod-security"
	below.Kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)
	result := s.Logical.TryCLI("cluster", "check", "north")
	expect.Refused(t, result, "manifold cluster join north")
	expect.Says(t, result.Stdout, "✗ ValidatingAdmissionPolicy "+name+"\n    missing", "✗ ValidatingAdmissionPolicyBinding "+name+"\n    missing")
	s.Logical.CLI(again...)
	s.Logical.CLI("cluster", "check", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig())
	below.Kubectl("get", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)

	s.Logical.CLI(append(again, "--pod-security", "privileged")...)
	expect.RolledOut(s, "miner", 1)
	s.Logical.CLI("cluster", "check", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig())
}
