// Package manifests says which objects an application may have, and takes from them what is not theirs to say.
package manifests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Rules say what the application is that objects belong to.
type Rules struct {
	// Namespace is that of the application.
	Namespace string
	// Account is the ServiceAccount as which the objects are written; empty if they are written with Manifold's own rights.
	Account string
	// Namespaced reports whether objects of a kind are in namespaces, and whether the logical cluster knows the kind.
	Namespaced func(schema.GroupVersionKind) (namespaced, known bool)
}

// privileged are groups that give rights, or that Manifold decides by: objects of them are written with the rights of a ServiceAccount alone. Who
// may write an Application need not have those of Manifold.
var privileged = []string{rbacv1.GroupName, v1alpha1.GroupName, delivery.GroupName}

// Check says which object an application may not have, and why.
func (r Rules) Check(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if why := r.refusal(object); why != "" {
			return fmt.Errorf("%s: %s", nameOf(object), why)
		}
	}
	return nil
}

func (r Rules) refusal(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	namespaced, known := r.Namespaced(gvk)
	scoped := known && !namespaced || object.GetNamespace() == ""
	switch {
	case scoped && r.Account == "":
		return "it is in no namespace, and written as a ServiceAccount alone: set spec.serviceAccountName to one that may write it"
	case !scoped && object.GetNamespace() != r.Namespace:
		return fmt.Sprintf("it is in namespace %q, and an application has objects in its own namespace alone, %q", object.GetNamespace(), r.Namespace)
	case slices.Contains(privileged, gvk.Group) && r.Account == "":
		return fmt.Sprintf("objects of group %s are written as a ServiceAccount alone: set spec.serviceAccountName to one that may write it", gvk.Group)
	case object.GetGenerateName() != "" && object.GetName() == "":
		return "it has no name"
	}
	return ""
}

// ours are what the names of labels, annotations and finalizers begin with that Manifold alone writes.
const ours = delivery.GroupName + "/"

// annotations are those that Manifold alone writes.
var annotations = []string{
	v1alpha1.AnnotationPlacement, v1alpha1.AnnotationAwaits, v1alpha1.AnnotationStatus, v1alpha1.AnnotationCluster, v1alpha1.AnnotationNode, v1alpha1.AnnotationPodUID,
	v1alpha1.AnnotationPodCluster, v1alpha1.AnnotationOrphan, v1alpha1.AnnotationView, v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents,
}

// Clean takes from an object what servers and Manifold write, and what would tie it to objects that it does not come with. It returns the paths of
// what somebody has put there for nothing.
func Clean(object *unstructured.Unstructured) (removed []string) {
	removed = append(removed, without(object.GetAnnotations(), object.SetAnnotations, "metadata.annotations", func(key string) bool {
		return slices.Contains(annotations, key) || strings.HasPrefix(key, ours)
	})...)
	removed = append(removed, without(object.GetLabels(), object.SetLabels, "metadata.labels", func(key string) bool {
		return key == delivery.LabelApplication || key == delivery.LabelPlacement || key == v1alpha1.LabelLogicalCluster
	})...)
	for _, list := range []string{"ownerReferences", "finalizers"} {
		if _, has, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", list); has {
			unstructured.RemoveNestedField(object.Object, "metadata", list)
			removed = append(removed, "metadata."+list)
		}
	}
	return removed
}

func without(values map[string]string, set func(map[string]string), path string, is func(string) bool) (removed []string) {
	for key := range values {
		if is(key) {
			removed = append(removed, fmt.Sprintf("%s[%s]", path, key))
			delete(values, key)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	if len(values) == 0 {
		values = nil
	}
	set(values)
	slices.Sort(removed)
	return removed
}

// foreign begins the annotations by which manifests tell PipeCD how to treat them.
const foreign = "pipecd.dev/"

// instead says what is done in place of an annotation of PipeCD, where there is anything.
var instead = map[string]string{foreign + "ignore-drift-detection": ": name the object in spec.drift.ignore"}

// Unhonoured says which annotations of an object are for PipeCD, and that nobody acts upon them.
func Unhonoured(object *unstructured.Unstructured) (out []string) {
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, foreign) {
			out = append(out, fmt.Sprintf("metadata.annotations[%s] is not honoured%s", key, instead[key]))
		}
	}
	slices.Sort(out)
	return out
}

// lastApplied is what kubectl notes of what a user has applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// FromLive returns the manifest that an object of the logical cluster is applied by: without status, what only servers write, marks, where it runs,
// and the number of replicas.
func FromLive(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	without(out.GetAnnotations(), out.SetAnnotations, "", func(key string) bool {
		// Where an object runs is no version of it either, whoever has said so.
		return key == lastApplied || key == "deployment.kubernetes.io/revision" || key == v1alpha1.AnnotationClusters
	})
	Clean(out)
	dropAllocated(out)
	// To scale is no new version: it takes effect at once, in clusters that are held as well.
	unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	return out
}

// jobLabels are those that the server puts onto the pods of a Job.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// allocated are fields of kinds that the server fills in where a user has not.
var allocated = map[schema.GroupKind][][]string{
	{Kind: "Service"}:               {{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}},
	{Kind: "PersistentVolumeClaim"}: {{"spec", "volumeName"}},
	{Kind: "ServiceAccount"}:        {{"secrets"}},
	{Group: "batch", Kind: "Job"}:   {{"spec", "selector"}},
}

// dropAllocated leaves to the server what it has chosen. A headless Service stays one.
func dropAllocated(object *unstructured.Unstructured) {
	kind := object.GroupVersionKind().GroupKind()
	if ip, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); ip == corev1.ClusterIPNone {
		return
	}
	for _, field := range allocated[kind] {
		unstructured.RemoveNestedField(object.Object, field...)
	}
	if kind == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		for _, label := range jobLabels {
			unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", label)
			unstructured.RemoveNestedField(object.Object, "metadata", "labels", label)
		}
	}
	ports, has, err := unstructured.NestedSlice(object.Object, "spec", "ports")
	if err != nil || !has || kind != (schema.GroupKind{Kind: "Service"}) {
		return
	}
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	_ = unstructured.SetNestedSlice(object.Object, ports, "spec", "ports") // which it has just been
}

func nameOf(object *unstructured.Unstructured) string {
	kind := object.GetKind()
	if group := object.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	if in := object.GetNamespace(); in != "" {
		return kind + " " + in + "/" + object.GetName()
	}
	return kind + " " + object.GetName()
}
