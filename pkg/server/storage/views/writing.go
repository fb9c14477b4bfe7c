package views

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// change is what somebody makes of an object that he sees through a view.
type change struct {
	rest.UpdatedObjectInfo
	store  *store
	looker looker
	// name is the object's. Create and update are what admission says of it, and force says that it may be made by this.
	name   string
	create rest.ValidateObjectFunc
	update rest.ValidateObjectUpdateFunc
	force  bool
	// makes says that somebody makes an object, which is not to be there.
	makes bool
	// joined says that the cluster has come to hold the object.
	joined bool
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (c *change) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	c.joined = false // it may be tried again
	accessor, err := meta.Accessor(old)
	if err != nil {
		return nil, err
	}
	if accessor.GetUID() == "" && accessor.GetResourceVersion() == "" {
		return c.made(ctx, old)
	}
	above, err := c.looker.versioned(old)
	if err != nil {
		return nil, err
	}
	if !c.looker.sees(above) {
		return c.join(ctx, above)
	}
	if c.makes {
		return nil, apierrors.NewAlreadyExists(c.looker.kind.Resource.GroupResource(), c.name)
	}
	if err := c.looker.refusal(above); err != nil {
		return nil, err
	}
	if view, has := identity.ViewsOf(above).Of(c.looker.cluster); has {
		return c.ofView(ctx, above, view)
	}
	seen, _, err := c.looker.show(ctx, old)
	if err != nil {
		return nil, err
	}
	wanted, err := c.UpdatedObjectInfo.UpdatedObject(ctx, seen.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	return c.looker.merge(old, seen, wanted)
}

// made returns an object that is made by this.
func (c *change) made(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := c.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return obj, c.looker.stamp(accessor, nil)
}

// join has the cluster hold an object that others hold, as an apply wants it that would make the object.
func (c *change) join(ctx context.Context, above projection.Object) (runtime.Object, error) {
	if err := c.looker.mayJoin(above); err != nil {
		return nil, err
	}
	if !c.force {
		return nil, apierrors.NewNotFound(c.looker.kind.Resource.GroupResource(), c.name)
	}
	wanted, err := c.UpdatedObjectInfo.UpdatedObject(ctx, c.store.New())
	if err != nil {
		return nil, err
	}
	out, err := c.store.joined(ctx, c.looker, above, wanted, c.create)
	c.joined = err == nil
	return out, err
}

// ofView changes what the cluster holds of an object, of which others hold something else.
func (c *change) ofView(ctx context.Context, above projection.Object, view v1alpha1.View) (runtime.Object, error) {
	l := c.looker
	own, err := l.held(above, view)
	if err != nil {
		return nil, err
	}
	shows, _ := l.seen(ctx, own)
	seen, err := l.stored(shows)
	if err != nil {
		return nil, err
	}
	if err := hide(seen); err != nil {
		return nil, err
	}
	wanted, err := c.UpdatedObjectInfo.UpdatedObject(ctx, seen.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	if wanted, err = fieldmanager.IgnoreManagedFieldsTimestampsTransformer(ctx, wanted, seen); err != nil {
		return nil, err
	}
	if err := l.stamp(wanted.DeepCopyObject().(metav1.Object), nil); err != nil {
		return nil, err
	}
	from, err := l.versioned(seen)
	if err != nil {
		return nil, err
	}
	next, err := l.versioned(wanted)
	if err != nil {
		return nil, err
	}
	if errs := l.steers(from, next, false); len(errs) > 0 {
		return nil, apierrors.NewInvalid(l.kind.GVK.GroupKind(), c.name, errs)
	}
	version := next.GetResourceVersion()
	if l.differs(own, from) {
		if next, err = l.rebase(own, from, next); err != nil {
			return nil, err
		}
	}
	before, err := l.stored(own)
	if err != nil {
		return nil, err
	}
	next, err = c.store.tried(ctx, l, above, next, func(ctx context.Context, obj, _ runtime.Object) error { return c.update(ctx, obj, before) })
	if err != nil {
		return nil, err
	}
	out, err := l.with(above, next)
	if err != nil {
		return nil, err
	}
	out.(metav1.Object).SetResourceVersion(version) // which says what the writer has seen, if anything
	return out, nil
}

// joined returns what is stored of an object once the cluster holds it too, as somebody wants it. Check is what admission says of that.
func (s *store) joined(ctx context.Context, l looker, above projection.Object, wanted runtime.Object, check rest.ValidateObjectFunc) (runtime.Object, error) {
	wanted = wanted.DeepCopyObject()
	if err := l.stamp(wanted.(metav1.Object), nil); err != nil {
		return nil, err
	}
	next, err := l.versioned(wanted)
	if err != nil {
		return nil, err
	}
	if errs := l.steers(above, next, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(l.kind.GVK.GroupKind(), above.GetName(), errs)
	}
	next, err = s.tried(ctx, l, above, next, func(ctx context.Context, obj, _ runtime.Object) error { return check(ctx, obj) })
	if err != nil {
		return nil, err
	}
	return l.with(above, next)
}

// tried returns what storage would make of an object if it was changed to what the cluster alone is to hold of it, or why it would refuse that: so what the
// cluster holds is complete and valid, and can be what the object says once the clusters before it are gone. What cannot be changed has to be the same in all of them.
func (s *store) tried(ctx context.Context, l looker, above, next projection.Object, check rest.ValidateObjectUpdateFunc) (projection.Object, error) {
	candidate, err := l.as(above, next)
	if err != nil {
		return nil, err
	}
	setReplicas(candidate, replicasOf(next))
	obj, err := l.stored(candidate)
	if err != nil {
		return nil, err
	}
	out, _, err := s.stock.Update(metadata.WithViewsDecided(ctx), above.GetName(), rest.DefaultUpdatedObjectInfo(obj), rest.ValidateAllObjectFunc, check, false,
		&metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, l.explained(above, err)
	}
	return l.versioned(out)
}

// explained says with a refusal that the object is one for several clusters, which its writer may not know.
func (l looker) explained(above projection.Object, err error) error {
	status, is := err.(*apierrors.StatusError)
	if !is || !apierrors.IsInvalid(err) {
		return err
	}
	out := *status
	out.ErrStatus.Message += fmt.Sprintf(" (cluster %q is to hold it beside %s: what cannot be changed of an object has to be the same in all clusters)", l.cluster, l.others(above))
	return &out
}

// leaving takes the cluster away from those that hold an object.
type leaving struct {
	looker        looker
	preconditions *metav1.Preconditions
	validate      rest.ValidateObjectFunc
	// last is what the view has shown of the object.
	last runtime.Object
}

// Preconditions implements rest.UpdatedObjectInfo.
func (w *leaving) Preconditions() *metav1.Preconditions { return w.preconditions }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (w *leaving) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	shown, visible, err := w.looker.show(ctx, old)
	if err != nil {
		return nil, err
	}
	above, err := w.looker.versioned(old)
	if err != nil {
		return nil, err
	}
	if !visible {
		return nil, apierrors.NewNotFound(w.looker.kind.Resource.GroupResource(), above.GetName())
	}
	if !identity.Viewed(above) {
		return nil, apierrors.NewConflict(w.looker.kind.Resource.GroupResource(), above.GetName(), errHeldAlone)
	}
	if w.validate != nil {
		if err := w.validate(ctx, shown); err != nil {
			return nil, err
		}
	}
	w.last = shown
	return w.looker.without(above)
}

var errHeldAlone = errors.New("all other clusters have left it meanwhile: try again")
