package records

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
)

// DropClaim takes the mirror of a claim away. It is held by finalizers, as the claim is, and only loses them once it is marked as being
// deleted: before, the stock controller would give it one back.
func DropClaim(ctx context.Context, client kubernetes.Interface, mirror *corev1.PersistentVolumeClaim) error {
	claims := client.CoreV1().PersistentVolumeClaims(mirror.Namespace)
	if mirror.DeletionTimestamp == nil {
		err := claims.Delete(ctx, mirror.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(mirror.UID))})
		if err != nil {
			return typed.IgnoreGone(err)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": mirror.UID, "finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = claims.Patch(ctx, mirror.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return typed.IgnoreGone(err)
}
