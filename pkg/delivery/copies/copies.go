// Package copies makes the objects that a variant set stands for.
//
// The primary is what was rendered. A copy has the workloads under names of their own, with the ConfigMaps and Secrets that they refer to, and a
// Service if that is wanted; a label tells its pods apart, in their selectors as well.
package copies

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// DefaultLabel tells the pods of variants apart, where the application does not say another one.
const DefaultLabel = v1alpha1.LabelVariant

// Options say what copies are made of, and how.
type Options struct {
	// Label is the label that tells variants apart, and Values what it says of each; by default DefaultLabel and the variant's name.
	Label  string
	Values map[string]string
	// Workloads are those that are copied, by kind and name as in "Deployment/web"; by default all Deployments.
	Workloads []string
	// Service is the one in front of the application; by default the only one.
	Service string
	// Labelled says that the primary's pods have the label too. It is needed where a Service leads to the primary alone, and must not change
	// while an application runs, since it makes other pods.
	Labelled bool
}

// Key names an object, as delivery.Part names workloads.
func Key(object *unstructured.Unstructured) string { return object.GetKind() + "/" + object.GetName() }

// value is what the label says of a variant.
func (o Options) value(variant string) string {
	if value := o.Values[variant]; value != "" {
		return value
	}
	return variant
}

func (o Options) label() string {
	if o.Label == "" {
		return DefaultLabel
	}
	return o.Label
}

// Primary returns the objects of the application itself. Replicas that an autoscaler sets are nobody else's.
func Primary(objects []*unstructured.Unstructured, o Options) ([]*unstructured.Unstructured, error) {
	scaled := Autoscaled(objects)
	out := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		out[i] = object.DeepCopy()
		if scaled[Key(object)] {
			unstructured.RemoveNestedField(out[i].Object, "spec", "replicas")
		}
	}
	if !o.Labelled {
		return out, nil
	}
	return out, Label(out, o)
}

// Label gives the pods of the primary the label by which they are told from those of copies. It changes the objects that it is given.
func Label(objects []*unstructured.Unstructured, o Options) error {
	workloads, err := o.workloads(objects)
	if err != nil {
		return err
	}
	for _, workload := range workloads {
		if err := setLabel(workload, o.label(), o.value(delivery.Primary), podLabels...); err != nil {
			return err
		}
	}
	return nil
}

// Unlabel takes that label from them again. It changes the objects that it is given.
func Unlabel(objects []*unstructured.Unstructured, o Options) {
	workloads, err := o.workloads(objects)
	if err != nil {
		return
	}
	for _, workload := range workloads {
		unstructured.RemoveNestedField(workload.Object, append(slices.Clone(podLabels), o.label())...)
	}
}

// Labels reports whether the pods of all workloads that are copied have the label of the primary.
func Labels(objects []*unstructured.Unstructured, o Options) bool {
	workloads, err := o.workloads(objects)
	return err == nil && !slices.ContainsFunc(workloads, func(workload *unstructured.Unstructured) bool {
		labels, _, err := unstructured.NestedStringMap(workload.Object, podLabels...)
		return err != nil || labels[o.label()] != o.value(delivery.Primary)
	})
}

// podLabels is where a workload has the labels of its pods.
var podLabels = []string{"spec", "template", "metadata", "labels"}

// Selecting returns the label by which a Service leads to one variant alone, and its value.
func (o Options) Selecting(variant string) (label, value string) { return o.label(), o.value(variant) }

// Front returns the name of the Service in front of the application, and the workloads of which copies are made whose pods it leads to. One that leads
// to none of them, or to others as well, is refused: requests to it are not those that are shared out.
func (o Options) Front(objects []*unstructured.Unstructured) (name string, leads []string, err error) {
	service, err := o.service(objects)
	if err != nil {
		return "", nil, err
	}
	selector, _, err := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if external, _, _ := unstructured.NestedString(service.Object, "spec", "type"); err != nil || len(selector) == 0 || external == "ExternalName" {
		return "", nil, field.Invalid(field.NewPath("service", "name"), service.GetName(), "the Service leads to no pods by a selector")
	}
	delete(selector, o.label()) // by this clusters tell variants apart
	copied, err := o.workloads(objects)
	if err != nil {
		return "", nil, err
	}
	for _, object := range objects {
		labels, is, err := unstructured.NestedStringMap(object.Object, podLabels...)
		if err != nil || !is || !selects(selector, labels) {
			continue
		}
		if !slices.Contains(copied, object) {
			return "", nil, field.Invalid(field.NewPath("workloads"), Key(object), fmt.Sprintf("Service %s leads to its pods as well, and no copies are made of it", service.GetName()))
		}
		leads = append(leads, Key(object))
	}
	if len(leads) == 0 {
		return "", nil, field.Invalid(field.NewPath("service", "name"), service.GetName(), "the Service leads to none of the workloads of which copies are made")
	}
	return service.GetName(), leads, nil
}

// Ports are those of the Service in front, none if there is no such Service.
func (o Options) Ports(objects []*unstructured.Unstructured) []int32 {
	service, err := o.service(objects)
	if err != nil {
		return nil
	}
	var out []int32
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, port := range ports {
		entry, _ := port.(map[string]any)
		if n, is := entry["port"].(int64); is && n > 0 && n <= math.MaxUint16 {
			out = append(out, int32(n))
		}
	}
	return out
}

// selects reports whether a selector of a Service selects what has these labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if has, there := labels[key]; !there || has != value {
			return false
		}
	}
	return true
}

// ErrNothing says that there is nothing to copy.
var ErrNothing = errors.New("there is no workload to copy")

// Copy returns the objects of a copy, with so many replicas of each workload. Own is the target that those are for alone, "" for all: their names,
// but for that of the Service, end in it as well.
func Copy(objects []*unstructured.Unstructured, name string, variant delivery.Variant, own string, replicas map[string]int32, o Options) ([]*unstructured.Unstructured, error) {
	if variant.Suffix == "" {
		return nil, field.Required(field.NewPath("suffix"), fmt.Sprintf("the names of the %s's objects must end in one", name))
	}
	if workloads, err := o.workloads(objects); err != nil {
		return nil, err
	} else if len(workloads) == 0 {
		return nil, fmt.Errorf("%w for the %s", ErrNothing, name)
	}
	objects, changed, err := patched(objects, variant.Patches)
	if err != nil {
		return nil, err
	}
	workloads, err := o.workloads(objects)
	if err != nil {
		return nil, err
	}
	front := "-" + variant.Suffix
	c := copier{Options: o, variant: name, suffix: front, front: front, taken: keysOf(objects)}
	if own != "" {
		c.suffix += "-" + own
	}
	var out []*unstructured.Unstructured
	used := map[string]bool{}
	if variant.Service {
		service, err := o.service(objects)
		if err != nil {
			return nil, err
		}
		made, err := c.service(service)
		if err != nil {
			return nil, err
		}
		out = append(out, made)
		used[Key(service)] = true
	}
	configs := configsOf(objects)
	var made []*unstructured.Unstructured
	for _, workload := range workloads {
		copied, err := c.workload(workload, replicas[Key(workload)], configs, used)
		if err != nil {
			return nil, err
		}
		made = append(made, copied)
		used[Key(workload)] = true
	}
	if err := unused(changed, used); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if configs[key] == nil {
			continue
		}
		copied, err := c.rename(configs[key], c.suffix)
		if err != nil {
			return nil, err
		}
		out = append(out, copied)
	}
	return append(out, made...), nil
}

// keysOf are the keys of objects.
func keysOf(objects []*unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	for _, object := range objects {
		out[Key(object)] = true
	}
	return out
}

// workloads are those of the objects that are copied.
func (o Options) workloads(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		group := object.GroupVersionKind().Group
		if len(o.Workloads) == 0 && object.GetKind() == "Deployment" && group == "apps" || slices.Contains(o.Workloads, Key(object)) && group == "apps" {
			out = append(out, object)
		}
	}
	for i, key := range o.Workloads {
		if !slices.ContainsFunc(out, func(object *unstructured.Unstructured) bool { return Key(object) == key }) {
			return nil, field.NotFound(field.NewPath("workloads").Index(i), key)
		}
	}
	return out, nil
}

// Replicas are those that the manifests give the workloads that are copied.
func (o Options) Replicas(objects []*unstructured.Unstructured) (map[string]int32, error) {
	found, err := o.workloads(objects)
	if err != nil {
		return nil, err
	}
	out := map[string]int32{}
	for _, workload := range found {
		out[Key(workload)] = ReplicasOf(workload)
	}
	return out, nil
}

// ReplicasOf are those that a manifest gives its workload, one where it says nothing.
func ReplicasOf(workload *unstructured.Unstructured) int32 {
	n, has, err := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !has || err != nil {
		return 1
	}
	return int32(min(max(n, 0), math.MaxInt32))
}

// service is the one in front of the application.
func (o Options) service(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Service" && object.GroupVersionKind().Group == "" && (o.Service == "" || object.GetName() == o.Service) && !ofVariant(object) {
			found = append(found, object)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && o.Service != "":
		return nil, field.NotFound(field.NewPath("service", "name"), o.Service)
	case len(found) == 0:
		return nil, field.Required(field.NewPath("service", "name"), "there is no Service among the objects")
	}
	return nil, field.Required(field.NewPath("service", "name"), fmt.Sprintf("there are %d Services among the objects: say which one", len(found)))
}

// Autoscaled are the workloads whose replicas a HorizontalPodAutoscaler among the objects sets.
func Autoscaled(objects []*unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	for _, object := range objects {
		if object.GetKind() != "HorizontalPodAutoscaler" || object.GroupVersionKind().Group != "autoscaling" {
			continue
		}
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "name")
		out[kind+"/"+name] = true
	}
	return out
}

// configsOf are the ConfigMaps and Secrets among objects.
func configsOf(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		if key := Key(object); object.GroupVersionKind().Group == "" && (object.GetKind() == "ConfigMap" || object.GetKind() == "Secret") {
			out[key] = object
		}
	}
	return out
}

// setLabel sets a label in a map of labels. It refuses what is no map.
func setLabel(object *unstructured.Unstructured, label, value string, path ...string) error {
	labels, _, err := unstructured.NestedStringMap(object.Object, path...)
	if err != nil {
		return field.Invalid(field.NewPath(path[0], path[1:]...), Key(object), "must map labels to values")
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = value
	if err := unstructured.SetNestedStringMap(object.Object, labels, path...); err != nil {
		return field.Invalid(field.NewPath(path[0], path[1:]...), Key(object), err.Error())
	}
	return nil
}

// nameFor returns the name of a copy.
func nameFor(object *unstructured.Unstructured, suffix string) (string, error) {
	name, most := object.GetName()+suffix, validation.DNS1123SubdomainMaxLength
	if object.GetKind() == "Service" {
		most = validation.DNS1035LabelMaxLength
	}
	if len(name) > most || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", field.Invalid(field.NewPath("suffix"), suffix, fmt.Sprintf("%s cannot be called %s: a name has at most %d characters, all of a-z, 0-9, '-' and '.'", Key(object), name, most))
	}
	return name, nil
}
