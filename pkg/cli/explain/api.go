package explain

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// rootCA is the ConfigMap by which each namespace has the authority of the logical cluster.
const rootCA = "kube-root-ca.crt"

// api returns how the pods of a template call the logical cluster, if it was made now; nil if they do not. Pods that were made when their
// ServiceAccount had rights, which it has no more, go on as they are.
func (g gatherer) api(ctx context.Context, template *corev1.PodTemplateSpec, namespace string) (*projection.API, error) {
	if template == nil {
		return nil, nil
	}
	account := projection.Grantee{Namespace: namespace, Name: projection.AccountOf(&template.Spec)}
	above, err := g.client.CoreV1().ServiceAccounts(namespace).Get(ctx, account.Name, metav1.GetOptions{})
	if err != nil {
		above = nil
	}
	var problem error
	calls := projection.CallsAPI(template.Annotations, func() (granted bool) {
		if !projection.HasToken(&template.Spec, above) {
			return false
		}
		granted, problem = g.granted(ctx, account)
		return granted
	})
	if !calls || problem != nil {
		return nil, problem
	}
	out := &projection.API{}
	if settings, err := g.client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, manifoldv1alpha1.SettingsName, metav1.GetOptions{}); err == nil {
		if at, err := url.Parse(settings.Data[manifoldv1alpha1.SettingAdvertiseURL]); err == nil {
			out.Host, out.Port = at.Hostname(), cmp.Or(at.Port(), "443")
		}
	}
	if authority, err := g.client.CoreV1().ConfigMaps(namespace).Get(ctx, rootCA, metav1.GetOptions{}); err == nil {
		out.Authority = authority.Data["ca.crt"]
	}
	out.Token = projection.MountsToken(&template.Spec, above)
	return out, nil
}

// granted reports whether a ServiceAccount has rights, as far as the user may read the bindings.
func (g gatherer) granted(ctx context.Context, account projection.Grantee) (bool, error) {
	roles, err := g.client.RbacV1().RoleBindings(account.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("read who has rights in namespace %q: %w", account.Namespace, err)
	}
	if err == nil {
		for i := range roles.Items {
			if projection.Grants(account.Namespace, roles.Items[i].Subjects, account) {
				return true, nil
			}
		}
	}
	wide, err := g.client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("read who has rights everywhere: %w", err)
	}
	if err == nil {
		for i := range wide.Items {
			if projection.Grants("", wide.Items[i].Subjects, account) {
				return true, nil
			}
		}
	}
	return false, nil
}
