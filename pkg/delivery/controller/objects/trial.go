package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Trial is what the server makes of an object that it would store.
type Trial struct {
	// Admitted is what would be stored, nil where an object that is being deleted is in its place.
	Admitted *unstructured.Unstructured
	// Present is what is there and may be a part of that, nil if nothing is.
	Present metav1.Object
}

// Try asks what the answer to applying an object would be, of which nothing is kept. Applying keeps the fields that others have set, and clusters do not get
// those: so where there are any, it asks about the manifest alone as well.
func (w *Writer) Try(ctx context.Context, account Account, owner Owner, object wanted.Object) (Trial, error) {
	at, err := w.place(account, object)
	if err != nil {
		return Trial{}, err
	}
	client, err := w.client(account)
	if err != nil {
		return Trial{}, err
	}
	present, err := w.present(ctx, client, at, object.Key)
	if err != nil {
		return Trial{}, refusal(object.Key, fmt.Errorf("look whether it is there: %w", err))
	}
	if err := mayTake(present, owner.of(object)); err != nil {
		return Trial{}, &RefusedError{object.Key, err}
	}
	if present != nil && present.GetDeletionTimestamp() != nil {
		if object.Held {
			return Trial{}, fmt.Errorf("%s is being deleted: waiting until it is gone", object.Key)
		}
		return Trial{}, nil // another one will be in its place
	}
	admitted, err := at.in(client).Apply(ctx, object.Name, at.manifest(object, owner, false), metav1.ApplyOptions{
		FieldManager: at.manager(owner), Force: present != nil, DryRun: []string{metav1.DryRunAll},
	})
	if err != nil || present == nil || !object.Held || !replaceable(object) || !shared(admitted) {
		return Trial{admitted, present}, refusal(object.Key, err)
	}
	admitted, err = w.alone(ctx, at, object, present)
	return Trial{Admitted: admitted}, refusal(object.Key, err)
}

// alone asks what the answer would be to an object that has nothing but what its manifest says, as clusters hold it. That is for us to ask: a ServiceAccount
// that may apply an object need not have the right to replace it.
func (w *Writer) alone(ctx context.Context, at place, object wanted.Object, present metav1.Object) (*unstructured.Unstructured, error) {
	client, err := w.client(Account{})
	if err != nil {
		return nil, err
	}
	manifest := object.Apply(false)
	manifest.SetUID(present.GetUID())
	manifest.SetResourceVersion(present.GetResourceVersion())
	return at.in(client).Update(ctx, manifest, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager, DryRun: []string{metav1.DryRunAll}})
}

// frozen are the built-in kinds of which an object that is there cannot be replaced by its manifest, since the server has filled in what cannot be changed.
var frozen = sets.New(
	schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "batch", Kind: "Job"},
)

// replaceable reports whether an object can be asked about as its manifest alone has it. Of what users apply themselves, that may be nothing but a name. We
// have no right to objects of custom kinds, on which operators write as well.
func replaceable(object wanted.Object) bool {
	if !scheme.Scheme.Recognizes(object.Manifest.GroupVersionKind()) {
		return false
	}
	for field := range object.Manifest.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return !frozen.Has(schema.GroupKind{Group: object.Group, Kind: object.Kind})
		}
	}
	return false
}

// shared reports whether others have set fields of an object that stay when it is applied. What they have set is judged with the manifest then, and clusters
// do not get it.
func shared(object *unstructured.Unstructured) bool {
	for _, entry := range object.GetManagedFields() {
		own := entry.Manager == v1alpha1.FieldManager || strings.HasPrefix(entry.Manager, v1alpha1.FieldManager+"-")
		if own || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil || says(fields) {
			return true
		}
	}
	return false
}

// says reports whether fields are more than what Manifold itself notes on objects.
func says(fields map[string]json.RawMessage) bool {
	for field, below := range fields {
		if field != "f:metadata" {
			return true
		}
		var metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		}
		if err := json.Unmarshal(below, &metadata); err != nil || len(metadata.Labels) > 0 {
			return true
		}
		for name := range metadata.Annotations {
			if name != "." && !manifold.KeptAnnotation(strings.TrimPrefix(name, "f:")) {
				return true
			}
		}
	}
	return false
}
