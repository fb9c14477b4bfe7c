// Package departures lets applications go: what stays of one is set free, and what no owner reference holds is deleted.
package departures

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// Departure is the end of an application.
type Departure struct {
	Client deliveryclient.ApplicationsGetter
	// Objects writes what an application leaves behind.
	Objects dynamic.Interface
	// Scoped knows what is in no namespace, and As returns who may delete that.
	Scoped *objects.ClusterScoped
	As     objects.Clients
	// DeleteHistory deletes the revisions and releases of an application.
	DeleteHistory func(ctx context.Context, app *v1alpha1.Application) error
}

// ErrStays says that something of an application cannot be deleted, and what to do.
var ErrStays = errors.New("the application is deleted once all that belongs to it is")

// Leave lets an application go. What its owner references hold goes with it, as the garbage collector does it. What stays, since it is orphaned
// or was never the application's own, is set free first: its clusters hold it as it stands from then on, and not at revisions that go.
func (d *Departure) Leave(ctx context.Context, app *v1alpha1.Application) error {
	if !slices.Contains(app.Finalizers, v1alpha1.FinalizerApplication) {
		return nil
	}
	orphans := slices.Contains(app.Finalizers, metav1.FinalizerOrphanDependents)
	if err := d.free(ctx, app, orphans); err != nil {
		return fmt.Errorf("set free what stays of the application: %w", err)
	}
	if err := d.clear(ctx, app, orphans); err != nil {
		return err
	}
	if err := d.DeleteHistory(ctx, app); err != nil {
		return fmt.Errorf("delete the history of the application: %w", err)
	}
	left := app.DeepCopy()
	left.Finalizers = slices.DeleteFunc(left.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerApplication })
	_, err := d.Client.Applications(app.Namespace).Update(ctx, left, metav1.UpdateOptions{})
	return unlessGone(err)
}

// free sets free the objects of an application that stay. They are asked for, since what a cache does not show yet would be held for good.
func (d *Departure) free(ctx context.Context, app *v1alpha1.Application, orphans bool) error {
	var errs []error
	for _, resource := range freed() {
		client := d.Objects.Resource(resource).Namespace(app.Namespace)
		found, err := client.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{v1alpha1.LabelApplication: app.Name}.String()})
		if err != nil {
			errs = append(errs, unlessGone(fmt.Errorf("list %s: %w", resource.GroupResource(), err)))
			continue
		}
		for i := range found.Items {
			object := &found.Items[i]
			if !orphans && owns(app, object) {
				continue
			}
			patch, err := freeing(app, object)
			if err != nil {
				return err
			}
			_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			errs = append(errs, unlessGone(err))
		}
	}
	return errors.Join(errs...)
}

// clear deletes what is in no namespace of an application, which no owner reference holds, or sets it free if objects are orphaned. That is for its ServiceAccount
// to do, as it was to make it.
func (d *Departure) clear(ctx context.Context, app *v1alpha1.Application, orphans bool) error {
	if !d.Scoped.Known(app.Spec.ServiceAccountName != "") {
		return fmt.Errorf("%w: not all objects in no namespace are known yet", ErrStays)
	}
	owner := objects.Owner{Namespace: app.Namespace, Name: app.Name, UID: app.UID}
	found := slices.DeleteFunc(d.Scoped.Of(cache.MetaObjectToName(app)), func(p observe.Present) bool {
		return !objects.Owned(p.Object, owner) || p.Object.GetDeletionTimestamp() != nil
	})
	slices.SortStableFunc(found, func(a, b observe.Present) int { // its rights may be among it
		return cmp.Compare(strings.Count(a.Group, rbacv1.GroupName), strings.Count(b.Group, rbacv1.GroupName))
	})
	var errs []error
	for _, p := range found {
		if app.Spec.ServiceAccountName == "" {
			errs = append(errs, fmt.Errorf("%w: %s is in no namespace: set spec.serviceAccountName to a ServiceAccount that may delete it, or delete it yourself", ErrStays, p.Key))
			continue
		}
		if err := d.without(ctx, app, p, orphans); err != nil {
			errs = append(errs, fmt.Errorf("%w: delete %s as ServiceAccount %s: %w: give it the right, or delete that yourself", ErrStays, p.Key, app.Spec.ServiceAccountName, err))
		}
	}
	return errors.Join(errs...)
}

// without deletes an object in no namespace, or sets it free.
func (d *Departure) without(ctx context.Context, app *v1alpha1.Application, p observe.Present, orphans bool) error {
	resource, known := d.Scoped.Resource(schema.GroupKind{Group: p.Group, Kind: p.Kind})
	if !known {
		return nil // it has gone with its kind
	}
	client, err := d.As(objects.Account{Namespace: app.Namespace, ServiceAccount: app.Spec.ServiceAccountName})
	if err != nil {
		return err
	}
	if !orphans {
		return unlessGone(client.Resource(resource).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.Object.GetUID()))}))
	}
	patch, err := freeing(app, p.Object)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return unlessGone(err)
}

func owns(app *v1alpha1.Application, object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
}

// freeing is the patch that takes an application's marks off an object. Shares stay what they are, but for their revisions.
func freeing(app *v1alpha1.Application, object metav1.Object) ([]byte, error) {
	annotations := map[string]any{}
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
			annotations[key] = nil
		}
	}
	if identity.AwaitedBy(object) != "" {
		annotations[manifold.AnnotationAwaits] = nil
	}
	if decision := identity.WholeDecisionOf(object); len(decision) > 0 {
		for cluster, share := range decision {
			share.Revision, share.Target = "", ""
			decision[cluster] = share
		}
		annotations[manifold.AnnotationPlacement] = decision.String()
	}
	owners := slices.DeleteFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(), "uid": object.GetUID(), "ownerReferences": owners,
		"labels": map[string]any{v1alpha1.LabelApplication: nil}, "annotations": annotations,
	}})
}

// freed are the kinds that delivery writes by its own rights.
func freed() []schema.GroupVersionResource {
	out := []schema.GroupVersionResource{manifold.SchemeGroupVersion.WithResource("placementpolicies")}
	for _, kind := range contained.Kinds() {
		out = append(out, kind.Resource)
	}
	return out
}

// unlessGone leaves out errors about what is no longer there.
func unlessGone(err error) error { return utilerrors.FilterOut(err, apierrors.IsNotFound) }
