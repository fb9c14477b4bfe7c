package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestHoldShowsThatPodsCallTheLogicalCluster(t *testing.T) {
	east := cluster("east", "8")
	g := gatherer{
		client: kubefake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: manifoldv1alpha1.SettingsName},
				Data: map[string]string{
					manifoldv1alpha1.SettingClusterToleration: "5m", manifoldv1alpha1.SettingUnschedulableToleration: "2m",
					manifoldv1alpha1.SettingAdvertiseURL: "https://pods.example:8443",
				},
			},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: rootCA}, Data: map[string]string{"ca.crt": "PEM"}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rights"}, Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Name: "default"},
			}}),
		manifold: fake.NewClientset(&east),
	}
	decision := placement.Decision{"east": {Replicas: 2}}
	object := toUnstructured(t, web(2, map[string]string{manifoldv1alpha1.AnnotationPlacement: decision.String()}))
	held, err := g.hold(t.Context(), object, "east")
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[output.Format][]string{
		"":     {"Its pods call the API of the logical cluster."},
		"yaml": {"manifold.dev/api-authority: PEM", "value: pods.example", `value: "8443"`, "audience: https://manifold.dev/logical/east"},
	} {
		var out strings.Builder
		if err := held.print(&out, format); err != nil {
			t.Fatal(err)
		}
		for _, phrase := range want {
			if !strings.Contains(out.String(), phrase) {
				t.Errorf("%s does not say %q:\n%s", format, phrase, out.String())
			}
		}
	}
	tokenless := web(2, map[string]string{manifoldv1alpha1.AnnotationPlacement: decision.String()})
	tokenless.Spec.Template.Spec.AutomountServiceAccountToken = ptr.To(false)
	if held, err = g.hold(t.Context(), toUnstructured(t, tokenless), "east"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := held.print(&out, ""); err != nil || strings.Contains(out.String(), "call the API") {
		t.Errorf("of pods without a token it says, %v:\n%s", err, out.String())
	}
}
