// Package stored writes decisions and statuses onto custom resources of the logical cluster. What these are to be is for others to know.
package stored

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// Objects are the custom resources of the logical cluster.
type Objects struct {
	// Client reads and writes them, as Manifold itself.
	Client dynamic.Interface
}

// SetDecision stores a decision on the object that it was made for. The breakdown keeps every cluster that has, or may come to have, a copy, so
// that none is forgotten by a restart.
func (s Objects) SetDecision(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, decision placement.Decision) error {
	breakdown := identity.CopiesOf(o)
	if breakdown == nil {
		breakdown = summary.CustomBreakdown{}
	}
	for _, d := range []placement.Decision{identity.DecisionOf(o), decision} {
		for cluster := range d {
			if _, known := breakdown[cluster]; !known {
				breakdown[cluster] = summary.CustomCluster{}
			}
		}
	}
	_, err := records.Write(ctx, s.in(k, o, k.Versions[0]), o, records.Change{
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision.String(), v1alpha1.AnnotationStatus: breakdown.String()},
		Hold:        len(decision) > 0,
	})
	return err
}

// SetBreakdown stores what clusters tell of an object.
func (s Objects) SetBreakdown(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, text string) error {
	_, err := records.Write(ctx, s.in(k, o, k.Versions[0]), o, records.Change{Annotations: map[string]string{v1alpha1.AnnotationStatus: text}, Anyhow: true})
	return err
}

// SetStatus reads an object in a version, and stores the status that it is to have, nil for none, if that is another one.
func (s Objects) SetStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, version string,
	statusOf func(above *unstructured.Unstructured) map[string]any,
) error {
	client := s.in(k, o, version)
	above, err := client.Dynamic.Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || above.GetUID() != o.UID {
		return err
	}
	before, _ := above.Object["status"].(map[string]any)
	status := statusOf(above)
	if len(before) == 0 && len(status) == 0 || reflect.DeepEqual(before, status) {
		return nil
	}
	if status == nil {
		delete(above.Object, "status")
	} else {
		above.Object["status"] = status
	}
	_, err = records.Status(ctx, client, above)
	return err
}

// Release takes from an object what came of its being in clusters, and our finalizer.
func (s Objects) Release(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata) error {
	// Clearing the status may have changed the version by which others' finalizers stay as they are: then the watch brings us back.
	_, err := records.Write(ctx, s.in(k, o, k.Versions[0]), o, records.Change{
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: "", v1alpha1.AnnotationStatus: ""}, Release: true, Anyhow: !records.Held(o),
	})
	return err
}

// in returns what writes to an object, in a version of its kind.
func (s Objects) in(k copies.Kind, o *metav1.PartialObjectMetadata, version string) typed.Custom {
	return typed.Custom{Dynamic: s.Client.Resource(k.Resource.WithVersion(version)).Namespace(o.Namespace), Whole: !k.Statuses[version]}
}
