package metadata

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// Who manages which field of a mirror is kept above. A change by a user is made below, by Manifold, and comes back with a report of the
// syncer, which would have it that Manifold has set the field: the user's next apply were a conflict with Manifold. So a report says nothing
// of managers but when it makes the mirror, and what an update by somebody else does to them is stored when the mirror shows the update.

// KeepManagers leaves the managers as they are.
func KeepManagers(obj, old metav1.Object) { obj.SetManagedFields(old.GetManagedFields()) }

// managersAfter makes the change of managers from old to want to those that an object has by now.
func managersAfter(have, old, want []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	out := slices.Clone(have)
	for _, entry := range old {
		if entryOf(want, entry) < 0 {
			out = slices.DeleteFunc(out, func(e metav1.ManagedFieldsEntry) bool { return sameManager(e, entry) })
		}
	}
	for _, entry := range want {
		if i := entryOf(old, entry); i >= 0 && equality.Semantic.DeepEqual(old[i], entry) {
			continue
		}
		if i := entryOf(out, entry); i >= 0 {
			out[i] = entry
		} else {
			out = append(out, entry)
		}
	}
	return out
}

func entryOf(entries []metav1.ManagedFieldsEntry, of metav1.ManagedFieldsEntry) int {
	return slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return sameManager(e, of) })
}

// sameManager reports whether two entries are of one manager. One that applies and updates has two.
func sameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource
}

// mirrorObject is an object of the internal version.
type mirrorObject interface {
	runtime.Object
	metav1.Object
}

// StoreManagers writes to a mirror what an update from old to want does to its managers, and returns the mirror. One that is gone by now
// needs no managers.
func StoreManagers[T mirrorObject](ctx context.Context, store rest.Updater, old, want, shown T, options *metav1.UpdateOptions) (T, error) {
	before, after, uid := old.GetManagedFields(), want.GetManagedFields(), old.GetUID()
	if equality.Semantic.DeepEqual(before, after) || identity.FromWithin(ctx) || len(options.DryRun) > 0 {
		return shown, nil
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, now runtime.Object) (runtime.Object, error) {
		out, ok := now.DeepCopyObject().(T)
		if !ok || out.GetUID() != uid {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: builtin.ResourceOf(ctx)}, shown.GetName(), errors.New("it is another one by now"))
		}
		out.SetManagedFields(managersAfter(out.GetManagedFields(), before, after))
		return out, nil
	})
	obj, _, err := store.Update(ctx, shown.GetName(), info, nil, rest.ValidateAllObjectUpdateFunc, false, options) // admitted before
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return shown, nil
	}
	if err != nil {
		return shown, fmt.Errorf("note who manages which field: %w", err)
	}
	stored, ok := obj.(T)
	if !ok {
		return shown, fmt.Errorf("the stock endpoint of %s returned a %T", builtin.ResourceOf(ctx), obj)
	}
	return stored, nil
}
