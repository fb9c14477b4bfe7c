package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// joinManager is the field manager of what joining applies. It differs from the syncer's, so that neither drops the other's
// fields from an object that both apply.
const joinManager = "manifold-join"

// credentialTimeout bounds the wait for the cluster to honour a token.
const credentialTimeout = 15 * time.Second

// grant makes, or brings up to date, what the syncer of a logical cluster needs in p: identity, rights and the fence around
// them. What is newly made goes on the undo stack.
func (p *physical) grant(ctx context.Context, logical types.UID, undo *undoStack) error {
	all, err := everything(logical, allowances{})
	if err != nil {
		return err
	}
	for _, piece := range all {
		if err := p.apply(ctx, piece, undo); err != nil {
			return fmt.Errorf("apply %s in the cluster: %w", piece, err)
		}
	}
	if err := p.allow(ctx, logical, undo); err != nil {
		return err
	}
	if err := p.allowPriorities(ctx, logical, undo); err != nil {
		return err
	}
	return p.allowVolumes(ctx, logical, undo)
}

func (p *physical) apply(ctx context.Context, piece piece, undo *undoStack) error {
	client := p.dynamic.Resource(piece.resource).Namespace(piece.object.GetNamespace())
	name := piece.object.GetName()
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	fresh := apierrors.IsNotFound(err)
	if err != nil && !fresh {
		return err
	}
	if !fresh && found.GetDeletionTimestamp() != nil {
		return errors.New("it is being deleted; try again when it is gone")
	}
	if !fresh {
		if err := piece.reset(ctx, client, found); err != nil {
			return err
		}
	}
	applied, err := client.Apply(ctx, name, piece.object, metav1.ApplyOptions{FieldManager: joinManager, Force: true})
	if err != nil || !fresh {
		return err
	}
	undo.push(piece.String(), func(ctx context.Context) error {
		return client.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(applied.GetUID())},
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
	})
	return nil
}

// reset brings what somebody else has changed of a piece back to what it should be: an apply leaves what others have added to a list, be it a
// condition under which a policy counts, and only puts back what was taken away.
func (p piece) reset(ctx context.Context, client dynamic.ResourceInterface, found *unstructured.Unstructured) error {
	differs, err := p.differences(found)
	if err != nil || len(differs) == 0 {
		return err
	}
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": found.GetUID()}}
	for _, field := range []string{"spec", "rules", "subjects", "webhooks"} {
		if want, has := p.object.Object[field]; has {
			patch = append(patch, map[string]any{"op": "add", "path": "/" + field, "value": want})
		}
	}
	if _, has := found.Object["aggregationRule"]; has {
		patch = append(patch, map[string]any{"op": "remove", "path": "/aggregationRule"})
	}
	body, err := json.Marshal(patch)
	if err != nil || len(patch) == 1 {
		return err
	}
	_, err = client.Patch(ctx, found.GetName(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: joinManager})
	return err
}

// kubeconfigWith returns a self-contained kubeconfig with a token, once the cluster has honoured that.
func (p *physical) kubeconfigWith(ctx context.Context, cluster string, logical types.UID, token string) ([]byte, error) {
	name := syncerName(logical)
	config := p.access.withToken(cluster, name, token)
	if err := p.tryCredential(ctx, config); err != nil {
		return nil, fmt.Errorf("try the new credential of ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	if err := tryFence(ctx, config); err != nil {
		return nil, fmt.Errorf("try ValidatingAdmissionPolicy %s: %w", name, err)
	}
	return clientcmd.Write(*config)
}

// tryCredential asks the cluster who it is with the credential that will be stored. A fresh token and a fresh binding take a
// moment to reach an API server's caches, so refusals are only believed after a while.
func (p *physical) tryCredential(ctx context.Context, kubeconfig *clientcmdapi.Config) error {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		var uid types.UID
		uid, last = clusterUID(ctx, client)
		switch {
		case apierrors.IsForbidden(last), apierrors.IsUnauthorized(last):
			return false, nil
		case last == nil && uid != p.uid:
			return false, errors.New("another cluster answered; the address must lead to one cluster only")
		}
		return last == nil, last
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// tryFence waits until the cluster denies the credential what the fence is there to deny: an API server takes a second or so until a
// new admission policy counts. The attempt is a dry run of what an earlier fence allowed.
func tryFence(ctx context.Context, kubeconfig *clientcmdapi.Config) error {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "denied-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return false, nil
		case apierrors.IsForbidden(err):
			// A role that does not count yet forbids too.
			return strings.Contains(err.Error(), strangeDenial), nil
		case apierrors.IsUnauthorized(err):
			return false, nil // a fresh token, at another API server than that which took it a moment ago
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the cluster does not enforce it within %s; is the admission plugin of that name on in its API server?",
			credentialTimeout)
	}
	return err
}

// revoke removes what joining made in p for a logical cluster, the rights first and the fence around them last.
func (p *physical) revoke(ctx context.Context, logical types.UID) error {
	all, err := everything(logical, allowances{priorities: new(int32), volumes: true, asks: &asking{}})
	if err != nil {
		return err
	}
	kinds, err := kindPieces(logical, nil)
	if err != nil {
		return err
	}
	if err := p.retire(ctx, logical, ""); err != nil {
		return err
	}
	return p.removeAll(ctx, append(all, kinds...), logical)
}

// removeAll removes what joining made, the last first.
func (p *physical) removeAll(ctx context.Context, all []piece, logical types.UID) error {
	for _, piece := range slices.Backward(all) {
		if err := p.remove(ctx, piece, logical); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", piece, err)
		}
	}
	return nil
}

func (p *physical) remove(ctx context.Context, piece piece, logical types.UID) error {
	client := p.dynamic.Resource(piece.resource).Namespace(piece.object.GetNamespace())
	name := piece.object.GetName()
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if piece.resource.Resource == "namespaces" {
		shared, err := p.shared(ctx, logical)
		if err != nil || shared {
			return err
		}
	}
	if err := client.Delete(ctx, name, options); err != nil || piece.resource.Resource != "namespaces" {
		return err
	}
	return p.awaitNoNamespace(ctx)
}

// awaitNoNamespace waits until the system namespace is gone, so that joining again right away finds nothing in its way.
func (p *physical) awaitNoNamespace(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, credentialTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := p.client.CoreV1().Namespaces().Get(ctx, manifoldv1alpha1.SystemNamespace, metav1.GetOptions{})
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

// shared returns whether the system namespace in the cluster is of use to another logical cluster too, or somebody else's.
func (p *physical) shared(ctx context.Context, logical types.UID) (bool, error) {
	namespace, err := p.client.CoreV1().Namespaces().Get(ctx, manifoldv1alpha1.SystemNamespace, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	made := labels.SelectorFromSet(madeByManifold())
	if !made.Matches(labels.Set(namespace.Labels)) {
		return true, nil
	}
	accounts, err := p.client.CoreV1().ServiceAccounts(manifoldv1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: made.String(),
	})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(accounts.Items, func(a corev1.ServiceAccount) bool { return a.Name != syncerName(logical) }), nil
}
