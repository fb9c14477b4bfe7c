package physical

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// AskAboutPods has the cluster ask the logical cluster about pods.
func (c *Cluster) AskAboutPods(ctx context.Context, logical types.UID, how grants.PodWebhook, undo *Undo) error {
	all, err := grants.ForPodWebhooks(logical, how)
	if err != nil {
		return err
	}
	return c.applyAll(ctx, all, undo)
}

// AsksAboutPods reports whether the cluster asks about pods.
func (c *Cluster) AsksAboutPods(ctx context.Context, logical types.UID) (bool, error) {
	found, err := c.podWebhook(ctx, logical)
	return found != nil, err
}

// podWebhook returns the webhook by which the cluster asks about pods, nil if it does not.
func (c *Cluster) podWebhook(ctx context.Context, logical types.UID) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	found, err := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, grants.PodWebhooksName(logical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !grants.Made(found.Labels) {
		return nil, nil
	}
	return found, nil
}

// StopAskingAboutPods has the cluster ask about pods no more, and reports whether it did.
func (c *Cluster) StopAskingAboutPods(ctx context.Context, logical types.UID) (taken bool, err error) {
	found, err := c.podWebhook(ctx, logical)
	if err != nil || found == nil {
		return false, err
	}
	all, err := grants.ForPodWebhooks(logical, grants.PodWebhook{})
	if err != nil {
		return false, err
	}
	return true, c.removeAll(ctx, all, logical)
}

// expectedWebhook is how the cluster is to ask about pods, with the token that it asks with; nil if it is not to ask, and does not.
func (c *Cluster) expectedWebhook(ctx context.Context, logical types.UID, said manifoldv1alpha1.ClusterAllows, how *grants.PodWebhook,
) (*grants.PodWebhook, error) {
	found, err := c.podWebhook(ctx, logical)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", grants.PodWebhooksName(logical), err)
	}
	if how == nil || found == nil && !said.PodWebhooks {
		return nil, nil
	}
	as := how.With(found)
	return &as, nil
}
