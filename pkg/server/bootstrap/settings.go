package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Settings are those of this process that others go by.
type Settings struct {
	ClusterToleration       time.Duration
	UnschedulableToleration time.Duration
	AdvertiseURL            string
}

// publish lets everybody who has logged in read by which tolerations this process decides, so that others decide alike, and where pods are told
// that it is.
func publish(ctx context.Context, kube kubernetes.Interface, s Settings) error {
	if err := makeNamespace(ctx, kube, metav1.NamespacePublic); err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: v1alpha1.SettingsName},
		Data: map[string]string{
			v1alpha1.SettingClusterToleration:       s.ClusterToleration.String(),
			v1alpha1.SettingUnschedulableToleration: s.UnschedulableToleration.String(),
			v1alpha1.SettingAdvertiseURL:            s.AdvertiseURL,
		},
	}
	if err := write(ctx, kube, want); err != nil {
		return fmt.Errorf("publish settings in ConfigMap %s/%s: %w", want.Namespace, want.Name, err)
	}
	role, binding := settingsRole()
	if err := ensure(ctx, kube.RbacV1().Roles(role.Namespace), role); err != nil {
		return fmt.Errorf("make Role %s/%s: %w", role.Namespace, role.Name, err)
	}
	if err := ensure(ctx, kube.RbacV1().RoleBindings(binding.Namespace), binding); err != nil {
		return fmt.Errorf("make RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}

// write makes a ConfigMap, or gives the one that is there the same content.
func write(ctx context.Context, kube kubernetes.Interface, want *corev1.ConfigMap) error {
	client := kube.CoreV1().ConfigMaps(want.Namespace)
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	case err == nil && !maps.Equal(have.Data, want.Data):
		have.Data = want.Data
		_, err = client.Update(ctx, have, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	}
	return err
}

// settingsRole lets everybody who has logged in read the settings.
func settingsRole() (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "manifold:settings"}
	return &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{v1alpha1.SettingsName}, Verbs: []string{"get"},
		}}}, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: user.AllAuthenticated}},
		}
}
