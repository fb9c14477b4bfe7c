package physical

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// Revoke removes what joining made in the cluster for a logical cluster, the rights first and the fence around them last.
func (c *Cluster) Revoke(ctx context.Context, logical types.UID) error {
	all, err := grants.All(logical, grants.Allowances{PriorityClassesUpTo: new(int32), Volumes: true, Pipelines: true, PodWebhook: &grants.PodWebhook{}, PodSecurity: grants.Baseline})
	if err != nil {
		return err
	}
	kinds, err := grants.ForKinds(logical, nil)
	if err != nil {
		return err
	}
	if err := c.retireAll(ctx, logical); err != nil {
		return err
	}
	return c.removeAll(ctx, append(all, kinds...), logical)
}

// removeAll removes what joining made, the last first.
func (c *Cluster) removeAll(ctx context.Context, all []grants.Piece, logical types.UID) error {
	for _, piece := range slices.Backward(all) {
		if err := c.remove(ctx, piece, logical); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", piece, err)
		}
	}
	return nil
}

func (c *Cluster) remove(ctx context.Context, piece grants.Piece, logical types.UID) error {
	client := c.dynamic.Resource(piece.Resource).Namespace(piece.Object.GetNamespace())
	name := piece.Object.GetName()
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if piece.Resource.Resource == "namespaces" {
		shared, err := c.shared(ctx, logical)
		if err != nil || shared {
			return err
		}
	}
	if err := client.Delete(ctx, name, options); err != nil || piece.Resource.Resource != "namespaces" {
		return err
	}
	return c.awaitNoNamespace(ctx)
}

// awaitNoNamespace waits until the system namespace is gone, so that joining again right away finds nothing in its way.
func (c *Cluster) awaitNoNamespace(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, manifoldv1alpha1.SystemNamespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("it is still there %s after it was deleted", credentialTimeout)
	}
	return err
}

// shared reports whether the system namespace in the cluster is of use to another logical cluster too, or somebody else's.
func (c *Cluster) shared(ctx context.Context, logical types.UID) (bool, error) {
	namespace, err := c.client.CoreV1().Namespaces().Get(ctx, manifoldv1alpha1.SystemNamespace, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if !grants.Made(namespace.Labels) {
		return true, nil
	}
	accounts, err := c.client.CoreV1().ServiceAccounts(manifoldv1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(grants.Labels()).String(),
	})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(accounts.Items, func(a corev1.ServiceAccount) bool { return a.Name != grants.Name(logical) }), nil
}
