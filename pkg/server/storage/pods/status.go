package pods

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// podStatusREST makes what others than a syncer say of the status of a mirrored pod known where the pod is: above it would not last, and a
// condition that a readiness gate waits for is waited for below.
type podStatusREST struct {
	builtin.Status
	change *podChangeREST
}

func (r *podStatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if identity.WritesMirrors(ctx) {
		return r.Status.Update(ctx, name, info, create, update, force, options)
	}
	return r.change.Update(ctx, name, info, create, update, force, options)
}
