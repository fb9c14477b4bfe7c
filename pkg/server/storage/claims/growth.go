package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// withGrowth has the clusters that hold a user's own claim say whether it may request another size: their storage classes know. They are
// asked after everything else has agreed. Who is refused can do something about it; later, an event would be all that tells.
func (r *claimREST) withGrowth(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj, old); err != nil {
				return err
			}
		}
		claim, ok := obj.(*api.PersistentVolumeClaim)
		before, was := old.(*api.PersistentVolumeClaim)
		if !ok || !was {
			return nil
		}
		want, have := claim.Spec.Resources.Requests[api.ResourceStorage], before.Spec.Resources.Requests[api.ResourceStorage]
		if want.Cmp(have) == 0 {
			return nil
		}
		return r.askGrowth(ctx, before, want)
	}
}

// askGrowth asks every cluster that holds a claim. One that does not answer might refuse.
func (r *claimREST) askGrowth(ctx context.Context, claim *api.PersistentVolumeClaim, want resource.Quantity) error {
	breakdown, err := summary.ParseBreakdown(claim.Annotations[v1alpha1.AnnotationStatus])
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err))
	}
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	for _, cluster := range slices.Sorted(maps.Keys(breakdown)) {
		if breakdown[cluster].Problem != "" {
			continue // it does not have this claim
		}
		connection, err := r.connections.Connection(cluster)
		if err != nil {
			return unanswered(claim, cluster, err)
		}
		live, err := r.identity.Claim(ctx, connection.Client, cluster, claim)
		if ours.IsOther(err) {
			continue // it does not have this claim, or not any more
		}
		if err != nil {
			return unanswered(claim, cluster, err)
		}
		patch, err := growthPatch(live.UID, want)
		if err != nil {
			return err
		}
		_, err = connection.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager})
		switch {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
			return unanswered(claim, cluster, err)
		default:
			return apierrors.NewForbidden(api.Resource("persistentvolumeclaims"), claim.Name, fmt.Errorf("cluster %q refuses: %w", cluster, err))
		}
	}
	return nil
}

// growthPatch asks for a size of the claim that has this UID alone.
func growthPatch(uid types.UID, want resource.Quantity) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{string(api.ResourceStorage): want.String()}}},
	})
}

func unanswered(claim *api.PersistentVolumeClaim, cluster string, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("claim %s/%s is in cluster %q, which cannot be asked whether it can grow: %v",
		claim.Namespace, claim.Name, cluster, err))
}
