package applications

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// departure is the end of an application.
type departure struct {
	history *history
	client  deliveryclient.ApplicationsGetter
	// objects writes what an application leaves behind.
	objects dynamic.Interface
}

// leave lets an application go. What its owner references hold goes with it, as the garbage collector does it. What stays, since it is orphaned
// or was never the application's own, is set free first: its clusters hold it as it stands from then on, and not at revisions that go.
func (d *departure) leave(ctx context.Context, app *v1alpha1.Application) error {
	if !slices.Contains(app.Finalizers, v1alpha1.FinalizerApplication) {
		return nil
	}
	orphans := slices.Contains(app.Finalizers, metav1.FinalizerOrphanDependents)
	if err := d.free(ctx, app, orphans); err != nil {
		return fmt.Errorf("set free what stays of the application: %w", err)
	}
	if err := d.history.deleteAll(ctx, app); err != nil {
		return fmt.Errorf("delete the history of the application: %w", err)
	}
	left := app.DeepCopy()
	left.Finalizers = slices.DeleteFunc(left.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerApplication })
	_, err := d.client.Applications(app.Namespace).Update(ctx, left, metav1.UpdateOptions{})
	return unlessGone(err)
}

// free sets free the objects of an application that stay. They are asked for, since what a cache does not show yet would be held for good.
func (d *departure) free(ctx context.Context, app *v1alpha1.Application, orphans bool) error {
	var errs []error
	for _, resource := range freed() {
		client := d.objects.Resource(resource).Namespace(app.Namespace)
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

func owns(app *v1alpha1.Application, object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
}

// freeing is the patch that takes an application's marks off an object. Shares stay what they are, but for their revisions.
func freeing(app *v1alpha1.Application, object *unstructured.Unstructured) ([]byte, error) {
	annotations := map[string]any{}
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
			annotations[key] = nil
		}
	}
	if decision := identity.DecisionOf(object); len(decision) > 0 {
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
