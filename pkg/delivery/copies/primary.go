package copies

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// selectorLabels is where a workload has the labels by which it selects its pods.
var selectorLabels = []string{"spec", "selector", "matchLabels"}

// Select makes the label of the primary a part of the selectors of the workloads that are copied, whose pods have it then. It changes the objects that
// it is given.
func Select(objects []*unstructured.Unstructured, o Options) error {
	workloads, err := o.workloads(objects)
	if err != nil {
		return err
	}
	for _, workload := range workloads {
		labels, _, err := unstructured.NestedStringMap(workload.Object, selectorLabels...)
		if has := labels[o.label()]; err == nil && has != "" && has != o.value(delivery.Primary) {
			at := field.NewPath(selectorLabels[0], selectorLabels[1:]...).Key(o.label())
			return fmt.Errorf("%s: %w", Key(workload), field.Invalid(at, has, "must be that of the primary, "+o.value(delivery.Primary)))
		}
		if err := setLabel(workload, o.label(), o.value(delivery.Primary), selectorLabels...); err != nil {
			return err
		}
	}
	return Label(objects, o)
}

// Selects returns the value that the selector of a workload has for the label of variants, "" if it has none.
func Selects(workload *unstructured.Unstructured, o Options) string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, selectorLabels...)
	return labels[o.label()]
}

// WithServices returns the objects of the primary with Services that lead to it alone, for each suffix one: it has the name of the Service in front and
// the suffix. It labels the pods in the objects that it is given.
func WithServices(objects []*unstructured.Unstructured, suffixes []string, o Options) ([]*unstructured.Unstructured, error) {
	if len(suffixes) == 0 {
		return objects, nil
	}
	front, err := o.service(objects)
	if err != nil {
		return nil, err
	}
	if err := Label(objects, o); err != nil {
		return nil, err
	}
	out, taken := objects, keysOf(objects)
	for _, suffix := range suffixes {
		made, err := copier{Options: o, variant: delivery.Primary, front: "-" + suffix, taken: taken}.service(front)
		if err != nil {
			return nil, err
		}
		annotations := made.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationServiceOf] = front.GetName()
		made.SetAnnotations(annotations)
		out = append(out[:len(out):len(out)], made)
	}
	return out, nil
}

// ofVariant reports whether a Service was made to lead to one variant alone, so that it is not the one in front.
func ofVariant(service *unstructured.Unstructured) bool {
	return service.GetAnnotations()[v1alpha1.AnnotationServiceOf] != ""
}
