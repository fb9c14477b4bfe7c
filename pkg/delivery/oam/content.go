package oam

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
)

// Content is what a revision is made of, ready to be copied.
type Content struct {
	Objects []*unstructured.Unstructured
	// Workloads are those that are copied, with their replicas, as in "Deployment/web".
	Workloads map[string]int32
	// Front is the Service in front of the application, under its convention name; nil if there is none.
	Front *unstructured.Unstructured
	// LeftOut are the objects of which no copies are made.
	LeftOut []string
}

// errNoWorkload says that there is nothing to run.
var errNoWorkload = errors.New("it has no Deployment and no StatefulSet to run")

// Prepare takes of the objects of a revision what is copied: the workloads, the ConfigMaps and Secrets that they may refer to, and one Service in front of
// them. The Service gets the convention name, which that of the copy is made of. The objects that it is given stay as they are.
func Prepare(revision Revision, objects []*unstructured.Unstructured) (Content, error) {
	out := Content{Workloads: map[string]int32{}}
	var services []*unstructured.Unstructured
	var keys []string
	for _, object := range objects {
		object = object.DeepCopy()
		kind, group := object.GetKind(), object.GroupVersionKind().Group
		switch {
		case group == "apps" && (kind == "Deployment" || kind == "StatefulSet"):
			keys = append(keys, copies.Key(object))
			if !revision.Native() {
				annotations := object.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[v1alpha1.AnnotationMadeOf] = revision.Reference()
				object.SetAnnotations(annotations)
			}
		case group == "" && kind == "Service":
			services = append(services, object)
			continue
		case group == "" && (kind == "ConfigMap" || kind == "Secret"):
		default:
			out.LeftOut = append(out.LeftOut, copies.Key(object))
			continue
		}
		out.Objects = append(out.Objects, object)
	}
	if len(keys) == 0 {
		return out, errNoWorkload
	}
	var err error
	if out.Workloads, err = (copies.Options{Workloads: keys}).Replicas(out.Objects); err != nil {
		return out, err
	}
	if out.Front = front(revision.Component(), services, out.Objects); out.Front == nil {
		return out, nil
	}
	for _, service := range services {
		if service != out.Front && !revision.Native() {
			out.LeftOut = append(out.LeftOut, copies.Key(service))
		}
	}
	out.Front.SetName(revision.Component())
	out.Objects = append(out.Objects, out.Front)
	return out, nil
}

// front is the Service in front: the one with the convention name, or the only one that leads to a workload.
func front(name string, services, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	var leading []*unstructured.Unstructured
	for _, service := range services {
		if _, _, err := (copies.Options{Service: service.GetName()}).Front(append(slices.Clone(objects), service)); err != nil {
			continue
		}
		if service.GetName() == name {
			return service
		}
		leading = append(leading, service)
	}
	if len(leading) == 1 {
		return leading[0]
	}
	return nil
}

// Options say how a revision is copied.
func (c Content) Options() copies.Options {
	out := copies.Options{}
	for _, object := range c.Objects {
		if _, is := c.Workloads[copies.Key(object)]; is {
			out.Workloads = append(out.Workloads, copies.Key(object))
		}
	}
	if c.Front != nil {
		out.Service = c.Front.GetName()
	}
	return out
}

// FromWorkload makes the content of a revision of a workload of the namespace. Template is that of the revision, nil for what the workload is now. The
// copies are new objects, so nothing of what servers and others have written on the workload comes along.
func FromWorkload(workload *unstructured.Unstructured, template map[string]any, services []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	spec, is := workload.Object["spec"].(map[string]any)
	if !is {
		return nil, fmt.Errorf("%s has no spec", copies.Key(workload))
	}
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workload.GetAPIVersion(), "kind": workload.GetKind(),
		"metadata": map[string]any{"name": workload.GetName(), "labels": labelsOf(workload)},
		"spec":     (&unstructured.Unstructured{Object: spec}).DeepCopy().Object,
	}}
	if template != nil {
		out.Object["spec"].(map[string]any)["template"] = (&unstructured.Unstructured{Object: template}).DeepCopy().Object
		unstructured.RemoveNestedField(out.Object, "spec", "template", "metadata", "labels", "pod-template-hash")
	}
	unstructured.RemoveNestedField(out.Object, "spec", "template", "metadata", "creationTimestamp")
	made := []*unstructured.Unstructured{out}
	for _, service := range services {
		of, is := service.Object["spec"].(map[string]any)
		if !is {
			continue
		}
		made = append(made, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": service.GetName(), "labels": labelsOf(service)},
			"spec": (&unstructured.Unstructured{Object: of}).DeepCopy().Object,
		}})
	}
	return made, nil
}

// labelsOf are the labels of an object that are its users' own.
func labelsOf(object *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range object.GetLabels() {
		if !ours(key) {
			out[key] = value
		}
	}
	return out
}

// ours reports whether a label is one by which delivery knows what it has made.
func ours(label string) bool { return strings.HasPrefix(label, v1alpha1.GroupName+"/") }

// Fronted is the Service in front of all revisions: as it was written, without what would tie it to one cluster or to an address.
func Fronted(front *unstructured.Unstructured) *unstructured.Unstructured {
	out := front.DeepCopy()
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		if ip, _, _ := unstructured.NestedString(out.Object, "spec", field); ip == "None" {
			continue
		}
		unstructured.RemoveNestedField(out.Object, "spec", field)
	}
	unstructured.RemoveNestedField(out.Object, "spec", "selector", v1alpha1.LabelVariant)
	return out
}
