package bootstrap

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/server/keys"
)

func TestFirstStartMakesWhatALogicalClusterNeeds(t *testing.T) {
	kube, manifold := fake.NewClientset(), manifoldfake.NewClientset()
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{metav1.NamespaceSystem, v1alpha1.SystemNamespace} {
		if _, err := kube.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := manifold.ManifoldV1alpha1().ClusterPlacementPolicies().Get(t.Context(), v1alpha1.DefaultPolicyName, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	binding, err := kube.RbacV1().ClusterRoleBindings().Get(t.Context(), keys.AdminsGroup, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if binding.RoleRef.Name != "cluster-admin" || binding.Subjects[0].Name != "kubeadm:cluster-admins" {
		t.Errorf("the administrator's group is bound by %+v", binding)
	}
	role, err := kube.RbacV1().ClusterRoles().Get(t.Context(), "system:aggregated-metrics-reader", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" || role.Rules[0].APIGroups[0] != "metrics.k8s.io" {
		t.Errorf("metrics are readable by %+v", role)
	}
	if _, err := kube.FlowcontrolV1().FlowSchemas().Get(t.Context(), "manifold-syncers", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestLaterStartsLeaveAloneWhatAdminsHaveChanged(t *testing.T) {
	kube, manifold := fake.NewClientset(), manifoldfake.NewClientset()
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	role, err := kube.RbacV1().ClusterRoles().Get(t.Context(), "manifold:edit", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = nil
	if _, err := kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	policies := manifold.ManifoldV1alpha1().ClusterPlacementPolicies()
	if err := policies.Delete(t.Context(), v1alpha1.DefaultPolicyName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.Get(t.Context(), v1alpha1.DefaultPolicyName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the default policy is put back after it was deleted: %v", err)
	}
	if role, err := kube.RbacV1().ClusterRoles().Get(t.Context(), "manifold:edit", metav1.GetOptions{}); err != nil || role.Rules != nil {
		t.Errorf("the edited role is put back: %v, %v", role, err)
	}
}

// A webhook whose pod cannot be reached yet must not keep the server from starting.
func TestLaterStartsWriteNothing(t *testing.T) {
	kube, manifold := fake.NewClientset(), manifoldfake.NewClientset()
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	kube.ClearActions()
	manifold.ClearActions()
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	for _, action := range append(kube.Actions(), manifold.Actions()...) {
		if action.GetVerb() != "get" {
			t.Errorf("a later start has %s of %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

// A start that was killed halfway is made good by the next one.
func TestStartThatWasKilledIsContinued(t *testing.T) {
	kube, manifold := fake.NewClientset(), manifoldfake.NewClientset()
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	if err := kube.CoreV1().Namespaces().Delete(t.Context(), v1alpha1.SystemNamespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Make(t.Context(), kube, manifold, Settings{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Namespaces().Get(t.Context(), v1alpha1.SystemNamespace, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestTolerationsAreThereToBeRead(t *testing.T) {
	kube, manifold := fake.NewClientset(), manifoldfake.NewClientset()
	for _, unschedulable := range []time.Duration{2 * time.Minute, 30 * time.Second} { // a later start with other flags
		if err := Make(t.Context(), kube, manifold, Settings{time.Minute, unschedulable, "https://127.0.0.1:6443"}); err != nil {
			t.Fatal(err)
		}
		got, err := kube.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "manifold", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{
			"cluster-toleration": "1m0s", "unschedulable-toleration": unschedulable.String(), "advertise-url": "https://127.0.0.1:6443",
		}; !maps.Equal(got.Data, want) {
			t.Errorf("published is %v, want %v", got.Data, want)
		}
	}
	binding, err := kube.RbacV1().RoleBindings("kube-public").Get(t.Context(), "manifold:settings", metav1.GetOptions{})
	if err != nil || binding.Subjects[0].Name != "system:authenticated" {
		t.Errorf("readable by %+v, %v", binding, err)
	}
}

func TestThoseWhoMayViewWorkloadsMaySeeHowTheyStand(t *testing.T) {
	var role *rbacv1.ClusterRole
	for _, r := range policyRoles() {
		if r.Name == "manifold:fleet-view" {
			role = r
		}
	}
	if role == nil || role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" {
		t.Fatalf("the role is %+v, want a part of what viewers have", role)
	}
	for _, want := range []string{"apps deployments/fleet", "apps statefulsets/fleet", "batch jobs/fleet", " pods/fleet"} {
		group, resource, _ := strings.Cut(want, " ")
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Equal(r.APIGroups, []string{group}) && slices.Equal(r.Resources, []string{resource}) && slices.Equal(r.Verbs, []string{"get"})
		}) {
			t.Errorf("they may not read %s", want)
		}
	}
}
