package services

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// serviceREST refuses a Service for which no address is left in the user's terms. The stock endpoint tells that as a fault of its own.
type serviceREST struct{ *servicestore.REST }

// Create implements rest.Creater.
func (r *serviceREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := r.REST.Create(ctx, obj, validate, options)
	if service, ok := obj.(*api.Service); ok {
		err = refuseFullRange(err, service.Name)
	}
	return created, err
}

// Update implements rest.Updater.
func (r *serviceREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	updated, created, err := r.REST.Update(ctx, name, info, create, update, force, options)
	return updated, created, refuseFullRange(err, name)
}

// refuseFullRange words that no address is left, and passes on every other error. The stock allocator keeps its own error in the text alone.
func refuseFullRange(err error, service string) error {
	if err == nil || !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), ipallocator.ErrFull.Error()) {
		return err
	}
	return apierrors.NewInvalid(api.Kind("Service"), service, field.ErrorList{field.Forbidden(field.NewPath("spec", "clusterIPs"),
		"no address is left in the ranges of \"kubectl get servicecidrs\": delete Services that nobody needs, make this one headless, or have an admin add a ServiceCIDR")})
}
