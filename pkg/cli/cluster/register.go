package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	manifoldclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

// kubeconfigKey is the key of the credential Secret that holds the kubeconfig. revokedKey is there instead once that has been revoked.
const (
	kubeconfigKey = "kubeconfig"
	revokedKey    = "revoked"
)

// logical is the logical cluster that physical ones join.
type logical struct {
	client   kubernetes.Interface
	manifold versioned.Interface
	clusters manifoldclient.ClusterInterface
	// uid is the UID of its kube-system namespace, which marks what it owns below.
	uid types.UID
}

// openLogical asks the API server behind config who it is.
func openLogical(ctx context.Context, config *rest.Config) (*logical, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	manifold, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	uid, err := physical.UID(ctx, client)
	if err != nil {
		return nil, err
	}
	return &logical{client: client, manifold: manifold, clusters: manifold.ManifoldV1alpha1().Clusters(), uid: uid}, nil
}

// list returns the clusters that have joined. A server that does not know the kind is told apart from an empty list.
func (l *logical) list(ctx context.Context) ([]manifoldv1alpha1.Cluster, error) {
	list, err := l.clusters.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the API server does not know the kind Cluster; point --kubeconfig at the one that "+
			"\"manifold start\" runs: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// registered finds the cluster called name among those that have joined. It refuses a name that stands for another cluster, and
// a cluster that has joined under another name; uid identifies the one that joins.
func registered(name string, uid types.UID, clusters []manifoldv1alpha1.Cluster) (*manifoldv1alpha1.Cluster, error) {
	var same *manifoldv1alpha1.Cluster
	for i, c := range clusters {
		switch known := types.UID(c.Status.UID); {
		case c.Name != name && known == uid:
			return nil, fmt.Errorf("it has joined as %q already; use that name, or remove it first: manifold cluster remove %s",
				c.Name, c.Name)
		case c.Name == name && c.DeletionTimestamp != nil:
			return nil, fmt.Errorf("a cluster of that name is being removed; try again when it is gone: "+
				"manifold cluster remove %s", name)
		case c.Name == name && known != "" && known != uid:
			return nil, fmt.Errorf("the name is taken by another cluster (kube-system UID %s, this one has %s); "+
				"choose another name, or remove that one first: manifold cluster remove %s, with --force if it is gone for good", known, uid, name)
		case c.Name == name:
			same = &clusters[i]
		}
	}
	return same, nil
}

// credentialName names the Secret that holds a cluster's credential.
func credentialName(cluster string) string {
	return "cluster-" + cluster
}

// store registers a cluster, or refreshes existing: its credential, its Cluster object and its identity. What is newly made goes
// on the undo stack. It is a conflict if the credential is not as it was before any more, nil if there was none.
func (l *logical) store(ctx context.Context, want, existing *manifoldv1alpha1.Cluster, before *corev1.Secret, credential map[string][]byte,
	undo *physical.Undo,
) error {
	if err := l.ensureNamespace(ctx); err != nil {
		return fmt.Errorf("make namespace %s: %w", manifoldv1alpha1.SystemNamespace, err)
	}
	secret := credentialName(want.Name)
	if err := l.storeCredential(ctx, secret, before, credential, undo); err != nil {
		return fmt.Errorf("store the credential as Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, secret, err)
	}
	stored, err := l.storeCluster(ctx, want, existing, undo)
	if err != nil {
		return fmt.Errorf("store Cluster %q: %w", want.Name, err)
	}
	if err := l.bindCredential(ctx, secret, stored); err != nil {
		return fmt.Errorf("make Cluster %q the owner of Secret %s/%s: %w", want.Name, manifoldv1alpha1.SystemNamespace, secret, err)
	}
	return nil
}

func (l *logical) ensureNamespace(ctx context.Context) error {
	namespaces := l.client.CoreV1().Namespaces()
	if _, err := namespaces.Get(ctx, manifoldv1alpha1.SystemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	// It belongs to the server rather than to this cluster, so it is not taken back when a later step goes wrong.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manifoldv1alpha1.SystemNamespace}}
	_, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{FieldManager: grants.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// storeCredential stores a credential in place of the one before, nil if there was none. It is a conflict if that has changed.
func (l *logical) storeCredential(ctx context.Context, name string, before *corev1.Secret, credential map[string][]byte, undo *physical.Undo) error {
	secrets := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace)
	fresh := before == nil
	if fresh {
		// What is applied would go on top of what another command has stored since then.
		made, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeOpaque},
			metav1.CreateOptions{FieldManager: grants.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return errors.New("another command has stored one meanwhile; run this one again")
		}
		if err != nil {
			return err
		}
		undo.Push("Secret "+manifoldv1alpha1.SystemNamespace+"/"+name, func(ctx context.Context) error {
			return secrets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(made.UID)}})
		})
		before = made
	}
	secret := corev1ac.Secret(name, manifoldv1alpha1.SystemNamespace).
		WithResourceVersion(before.ResourceVersion).
		WithType(corev1.SecretTypeOpaque).
		WithData(credential)
	stored, err := secrets.Apply(ctx, secret, metav1.ApplyOptions{FieldManager: grants.FieldManager, Force: true})
	if err != nil {
		return err
	}
	if !fresh {
		*undo = nil // the cluster may be reached with what has been made, if it has joined meanwhile
	}
	if _, revoked := stored.Data[revokedKey]; revoked {
		_, err = secrets.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"`+revokedKey+`":null}}`), metav1.PatchOptions{FieldManager: grants.FieldManager})
	}
	return err
}

// bindCredential makes the Cluster the owner of its credential, so that however the Cluster is deleted, the credential goes
// with it, and not before its finalizers are done.
func (l *logical) bindCredential(ctx context.Context, name string, owner *manifoldv1alpha1.Cluster) error {
	secret := corev1ac.Secret(name, manifoldv1alpha1.SystemNamespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(manifoldv1alpha1.SchemeGroupVersion.String()).WithKind("Cluster").
			WithName(owner.Name).WithUID(owner.UID))
	_, err := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).
		Apply(ctx, secret, metav1.ApplyOptions{FieldManager: grants.FieldManager + "-owner", Force: true})
	return err
}

// storeCluster makes the Cluster, or merges labels and connection into existing. Its UID is stored at once rather than when the
// cluster is first probed, so that nobody can join it a second time in between.
func (l *logical) storeCluster(ctx context.Context, want, existing *manifoldv1alpha1.Cluster, undo *physical.Undo,
) (*manifoldv1alpha1.Cluster, error) {
	stored := existing
	var err error
	if existing == nil {
		stored, err = l.clusters.Create(ctx, want, metav1.CreateOptions{FieldManager: grants.FieldManager})
		if err != nil {
			return nil, err
		}
		undo.Push(fmt.Sprintf("Cluster %q", want.Name), func(ctx context.Context) error {
			return l.discard(ctx, stored)
		})
	} else if stored, err = l.merge(ctx, want); err != nil {
		return nil, err
	}
	if stored.Status.UID == want.Status.UID {
		return stored, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"uid": want.Status.UID}})
	if err != nil {
		return nil, err
	}
	return l.clusters.Patch(ctx, want.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: grants.FieldManager}, "status")
}

func (l *logical) merge(ctx context.Context, want *manifoldv1alpha1.Cluster) (*manifoldv1alpha1.Cluster, error) {
	spec := map[string]any{
		"connection": want.Spec.Connection,
		// What is not allowed there any more, as after somebody has taken it away, is not to be here either.
		"allows": map[string]any{"priorityClassesUpTo": want.Spec.Allows.PriorityClassesUpTo, "volumes": want.Spec.Allows.Volumes,
			"podWebhooks": want.Spec.Allows.PodWebhooks, "podSecurity": want.Spec.Allows.PodSecurity,
			"pipelines": want.Spec.Allows.Pipelines},
	}
	if want.Spec.Network != "" {
		spec["network"] = want.Spec.Network
	}
	if len(want.Spec.PodCIDRs) > 0 {
		spec["podCIDRs"] = want.Spec.PodCIDRs
	}
	change := map[string]any{"spec": spec}
	if len(want.Labels) > 0 {
		change["metadata"] = map[string]any{"labels": maps.Clone(want.Labels)}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return l.clusters.Patch(ctx, want.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: grants.FieldManager})
}

// discard deletes a Cluster that was made a moment ago. Nothing has been placed on it that is worth waiting for.
func (l *logical) discard(ctx context.Context, made *manifoldv1alpha1.Cluster) error {
	if _, err := l.mark(ctx, made.Name, manifoldv1alpha1.RemoveForce); err != nil {
		return err
	}
	return l.clusters.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(made.UID)}})
}
