package views

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/views"
)

// stockScale is what the scale of a Deployment offers.
type stockScale interface {
	rest.Storage
	rest.Patcher
	rest.GroupVersionKindProvider
	rest.TableConvertor
}

// scale is the scale of what several clusters may hold: each view has a number of replicas of its own.
type scale struct {
	stockScale
	of *store
}

// changeScale wraps the scale of the kind, if that has one and several clusters may hold objects of it.
func (s *store) changeScale(storage map[string]rest.Storage) error {
	resource := s.kind.Resource.Resource + "/scale"
	was, served := storage[resource]
	if !served || inOnePlace[s.kind.Resource.Resource] {
		return nil
	}
	stock, ok := was.(stockScale)
	if !ok {
		return fmt.Errorf("storage of %s is a %T, which lacks a part that built-in storage has", resource, was)
	}
	storage[resource] = &scale{stock, s}
	return nil
}

// viewed returns an object that several clusters hold by their views, nil for any other one.
func (s *scale) viewed(ctx context.Context, name string) (projection.Object, error) {
	obj, err := s.of.stock.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !identity.Viewed(obj.(metav1.Object)) {
		return nil, nil
	}
	return s.of.through(ctx, "").versioned(obj)
}

// Get implements rest.Getter.
func (s *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := s.stockScale.Get(ctx, name, options)
	if _, ok := views.From(ctx); err != nil || !ok {
		return out, err
	}
	shown, err := s.of.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return counted(out, shown)
}

// counted returns a scale with the replicas of a Deployment as the view shows it.
func counted(of, shown runtime.Object) (runtime.Object, error) {
	out, is := of.DeepCopyObject().(*autoscaling.Scale)
	d, deployment := shown.(*apps.Deployment)
	if !is || !deployment {
		return nil, fmt.Errorf("%T is no scale of a %T", of, shown)
	}
	out.Spec.Replicas, out.Status.Replicas, out.ResourceVersion = d.Spec.Replicas, d.Status.Replicas, d.ResourceVersion
	return out, nil
}

// Update implements rest.Updater.
func (s *scale) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	above, err := s.viewed(ctx, name)
	if err != nil {
		return nil, false, err
	}
	_, through := views.From(ctx)
	switch {
	case above == nil:
		return s.stockScale.Update(ctx, name, info, create, update, force, options)
	case !through:
		return nil, false, apierrors.NewForbidden(s.of.kind.Resource.GroupResource(), name, s.of.through(ctx, "").byViews(above))
	}
	before, err := s.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	wanted, err := info.UpdatedObject(ctx, before)
	if err != nil {
		return nil, false, err
	}
	next, is := wanted.(*autoscaling.Scale)
	if !is {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("a %T is no scale", wanted))
	}
	if next.UID != "" && next.UID != above.GetUID() {
		return nil, false, apierrors.NewConflict(s.of.kind.Resource.GroupResource(), name, fmt.Errorf("it has UID %q, not %q", above.GetUID(), next.UID))
	}
	if err := update(ctx, next, before); err != nil {
		return nil, false, err
	}
	scaled := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		d, is := old.DeepCopyObject().(*apps.Deployment)
		if !is {
			return nil, fmt.Errorf("a %T has no scale", old)
		}
		d.Spec.Replicas, d.ResourceVersion = next.Spec.Replicas, next.ResourceVersion
		return d, nil
	})
	obj, _, err := s.of.Update(ctx, name, scaled, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, options)
	if err != nil {
		return nil, false, err
	}
	out, err := counted(next, obj)
	return out, false, err
}
