package physical

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// Grant makes, or brings up to date, what the syncer of a logical cluster needs in the cluster: identity, rights and the fence around them, and
// what is wanted beside. What is newly made goes on the undo stack. It returns what the cluster allows from then on, with what was allowed before
// and stays. A webhook for pods is left to AskAboutPods.
func (c *Cluster) Grant(ctx context.Context, logical types.UID, wanted grants.Allowances, undo *Undo) (grants.Allowances, error) {
	allowed := wanted
	if wanted.PriorityClassesUpTo == nil {
		var err error
		if allowed.PriorityClassesUpTo, err = c.PriorityClassesUpTo(ctx, logical); err != nil {
			return allowed, fmt.Errorf("read ClusterRole %s in the cluster: %w", grants.PrioritiesName(logical), err)
		}
	}
	if wanted.PodSecurity == "" {
		var err error
		if allowed.PodSecurity, err = c.PodSecurity(ctx, logical); err != nil {
			return allowed, fmt.Errorf("read ValidatingAdmissionPolicy %s in the cluster: %w", grants.PodSecurityName(logical), err)
		}
	}
	now := allowed
	now.PodWebhook, now.Kinds = nil, nil
	all, err := grants.All(logical, now)
	if err != nil {
		return allowed, err
	}
	if err := c.applyAll(ctx, all, undo); err != nil || len(wanted.Kinds) == 0 {
		return allowed, err
	}
	allowed.Kinds, err = c.allowKinds(ctx, logical, wanted.Kinds, undo)
	return allowed, err
}

// allowKinds gives rights for custom kinds beside those that there are, and returns all of them. Somebody else may allow other kinds at this moment, so
// the role is only changed as it was read.
func (c *Cluster) allowKinds(ctx context.Context, logical types.UID, wanted []schema.GroupResource, undo *Undo) (allowed []schema.GroupResource, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		role, err := c.role(ctx, grants.KindsName(logical))
		if err != nil {
			return fmt.Errorf("read ClusterRole %s in the cluster: %w", grants.KindsName(logical), err)
		}
		if role == nil {
			if role, err = c.makeKindsRole(ctx, logical, undo); err != nil {
				return err
			}
		}
		allowed = append(grants.KindsIn(role), wanted...)
		all, err := grants.ForKinds(logical, allowed)
		if err != nil {
			return err
		}
		for _, piece := range all {
			if piece.Object.GetKind() == "ClusterRole" {
				piece.Object.SetResourceVersion(role.ResourceVersion)
			}
		}
		return c.applyAll(ctx, all, undo)
	})
	return allowed, err
}

// makeKindsRole makes the role for custom kinds, without any. The error is a conflict if somebody else was faster.
func (c *Cluster) makeKindsRole(ctx context.Context, logical types.UID, undo *Undo) (*rbacv1.ClusterRole, error) {
	name := grants.KindsName(logical)
	roles := c.client.RbacV1().ClusterRoles()
	role, err := roles.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: grants.Labels()}},
		metav1.CreateOptions{FieldManager: grants.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, apierrors.NewConflict(rbacv1.Resource("clusterroles"), name, err)
	case err != nil:
		return nil, fmt.Errorf("create ClusterRole %s in the cluster: %w", name, err)
	}
	undo.Push("ClusterRole "+name, func(ctx context.Context) error {
		return roles.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(role.UID))})
	})
	return role, nil
}

// Kinds returns the custom kinds that Manifold has been given rights for.
func (c *Cluster) Kinds(ctx context.Context, logical types.UID) ([]schema.GroupResource, error) {
	role, err := c.role(ctx, grants.KindsName(logical))
	if err != nil || role == nil {
		return nil, err
	}
	return grants.KindsIn(role), nil
}

// PriorityClassesUpTo returns up to which value PriorityClasses may come along, nil if none may.
func (c *Cluster) PriorityClassesUpTo(ctx context.Context, logical types.UID) (*int32, error) {
	role, err := c.role(ctx, grants.PrioritiesName(logical))
	if err != nil || role == nil {
		return nil, err
	}
	return grants.PriorityClassesIn(role), nil
}

// PodSecurity returns the level of the Pod Security Standards that pods are kept to, "" for none. If one of the policy and its binding has gone, the
// other one says it.
func (c *Cluster) PodSecurity(ctx context.Context, logical types.UID) (string, error) {
	name, policies := grants.PodSecurityName(logical), c.client.AdmissionregistrationV1()
	policy, err := policies.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return grants.PodSecurityIn(policy.Labels, policy.Annotations), nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	binding, err := policies.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return grants.PodSecurityIn(binding.Labels, binding.Annotations), nil
}

// LiftPodSecurity takes back that pods are kept to a level, and reports whether they were.
func (c *Cluster) LiftPodSecurity(ctx context.Context, logical types.UID) (taken bool, err error) {
	level, err := c.PodSecurity(ctx, logical)
	if err != nil || level == "" {
		return false, err
	}
	all, err := grants.ForPodSecurity(logical, level)
	if err != nil {
		return false, err
	}
	return true, c.removeAll(ctx, all, logical)
}

// made reports whether there is a ClusterRole of joining's making.
func (c *Cluster) made(ctx context.Context, name string) (bool, error) {
	role, err := c.role(ctx, name)
	return err == nil && role != nil && grants.Made(role.Labels), err
}

// role reads a ClusterRole, nil if there is none.
func (c *Cluster) role(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	role, err := c.client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return role, err
}

// TakeBack takes back what was allowed and is not any more, the rights first, and returns what that is, in words. PersistentVolumes that are there stay, with
// their data, and are their admin's.
func (c *Cluster) TakeBack(ctx context.Context, logical types.UID, allowed grants.Allowances) (taken []string, err error) {
	for _, right := range []struct {
		stays  bool
		name   string
		pieces func(types.UID) ([]grants.Piece, error)
		what   string
	}{
		{allowed.Volumes, grants.VolumesName(logical), grants.ForVolumes, "PersistentVolumes go along; those that are there stay"},
		{allowed.Pipelines, grants.PipelinesName(logical), grants.ForPipelines, "pipelines show what their targets run there"},
	} {
		if right.stays {
			continue
		}
		made, err := c.made(ctx, right.name)
		if err == nil && !made {
			continue
		}
		all, failed := right.pieces(logical)
		if err = errors.Join(err, failed); err == nil {
			err = c.removeAll(ctx, all, logical)
		}
		if err != nil {
			return taken, fmt.Errorf("take back that %s: %w", right.what, err)
		}
		taken = append(taken, right.what)
	}
	return taken, nil
}

func (c *Cluster) applyAll(ctx context.Context, all []grants.Piece, undo *Undo) error {
	for _, piece := range all {
		if err := c.apply(ctx, piece, undo); err != nil {
			return fmt.Errorf("apply %s in the cluster: %w", piece, err)
		}
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, piece grants.Piece, undo *Undo) error {
	client := c.dynamic.Resource(piece.Resource).Namespace(piece.Object.GetNamespace())
	name := piece.Object.GetName()
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	fresh := apierrors.IsNotFound(err)
	if err != nil && !fresh {
		return err
	}
	if !fresh && found.GetDeletionTimestamp() != nil {
		return errors.New("it is being deleted; try again when it is gone")
	}
	if !fresh {
		if err := reset(ctx, client, piece, found); err != nil {
			return err
		}
	}
	applied, err := client.Apply(ctx, name, piece.Object, metav1.ApplyOptions{FieldManager: grants.FieldManager, Force: true})
	if err != nil || !fresh {
		return err
	}
	undo.Push(piece.String(), func(ctx context.Context) error {
		return client.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(applied.GetUID())},
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
	})
	return nil
}

// reset brings what somebody else has changed of a piece back to what it should be.
func reset(ctx context.Context, client dynamic.ResourceInterface, piece grants.Piece, found *unstructured.Unstructured) error {
	patch, err := piece.Patch(found)
	if err != nil || patch == nil {
		return err
	}
	_, err = client.Patch(ctx, found.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: grants.FieldManager})
	return err
}
