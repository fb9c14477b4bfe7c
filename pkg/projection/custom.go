package projection

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Custom returns the Kind of custom resources: a row that is made at run time. They are namespaced and unstructured, so that every field of
// theirs survives; a cluster holds a whole copy without the status, which is the cluster's to say. Of their pods nobody knows anything, unless
// somebody has described where objects of the kind have what these are made of; otherwise paths is nil.
//
// Objects are read as *unstructured.Unstructured, or as what paths has Read.
func Custom(gvk schema.GroupVersionKind, resource string, paths *PodPaths) Kind {
	out := Kind{
		GVK:        gvk,
		Resource:   gvk.GroupVersion().WithResource(resource),
		Namespaced: true,
		Workload:   true, // in that objects carry a decision
		Custom:     true,
		New:        func() Object { return &unstructured.Unstructured{} },
		is: func(in Object) bool {
			switch in.(type) {
			case *unstructured.Unstructured, *CustomObject:
				return in.GetObjectKind().GroupVersionKind() == gvk
			}
			return false
		},
		fill: func(in, out Object, _ Part) {
			fillContent(in.(*unstructured.Unstructured).Object, out.(*unstructured.Unstructured).Object)
		},
		refuse:     tooDeep,
		replace:    func(Object, Object) string { return "" },
		references: func(Object, *references) {},
		follows:    func(Object, *references) {},
		requires:   func(Object) []Requirement { return nil },
	}
	if paths == nil {
		return out
	}
	out.paths = paths
	out.demand = func(in Object) Demand {
		switch in := in.(type) {
		case *CustomObject:
			return in.demand
		case *unstructured.Unstructured:
			return paths.demand(in)
		}
		return Demand{Template: &corev1.PodTemplateSpec{}}
	}
	whole := out.fill
	out.fill = func(in, out Object, part Part) {
		whole(in, out, part)
		paths.fill(out.(*unstructured.Unstructured).Object, part.Share)
	}
	out.refuse = func(in Object) string {
		if reason := tooDeep(in); reason != "" {
			return reason
		}
		if problem := out.demand(in).Problem; problem != nil {
			return problem.Error()
		}
		return ""
	}
	return out
}

// DeepestContent is how many levels what is in a field of a custom object may be nested. Of what clusters show that is nested deeper, more than some 490
// levels, the rest is not read.
const DeepestContent = 450

// tooDeep says that an object is nested deeper than can be read back from a cluster.
func tooDeep(in Object) string {
	if o, ok := in.(*unstructured.Unstructured); ok {
		for key, value := range o.Object {
			if key != "status" && Deeper(value, DeepestContent) {
				return fmt.Sprintf("its %s is nested deeper than %d levels, which is more than is read of a cluster", key, DeepestContent)
			}
		}
	}
	return ""
}

// Deeper reports whether a JSON value is nested deeper than so many levels.
func Deeper(value any, levels int) bool {
	var inner iter.Seq[any]
	switch value := value.(type) {
	case map[string]any:
		inner = maps.Values(value)
	case []any:
		inner = slices.Values(value)
	default:
		return false
	}
	if levels == 0 {
		return true
	}
	for value := range inner {
		if Deeper(value, levels-1) {
			return true
		}
	}
	return false
}

// fillContent copies what a user wrote, metadata aside.
func fillContent(in, out map[string]any) {
	for key, value := range in {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			out[key] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// carriedOut are custom kinds whose status Manifold writes and goes by, such as who has asked for a promotion. No cluster gets one, whose admin would write the
// status then.
var carriedOut = map[schema.GroupKind]bool{
	{Group: "pipelines.weave.works", Kind: "Pipeline"}:      true,
	{Group: "pipelines.wego.weave.works", Kind: "Pipeline"}: true,
	{Group: "gitops.weave.works", Kind: "GitopsCluster"}:    true,
	{Group: "core.oam.dev", Kind: "ApplicationDeployment"}:  true,
	{Group: "core.oam.dev", Kind: "AppDeployment"}:          true,
}

// CustomWorkload reads what placement needs from the metadata of an object of a custom kind. The versions are others in which a cluster
// may have it. The error is that of a pin that does not parse.
func CustomWorkload(gvk schema.GroupVersionKind, versions []string, in metav1.Object) (placement.Workload, error) {
	w := placement.Workload{
		GVK: gvk, Versions: versions, Custom: true, Namespace: in.GetNamespace(), Name: in.GetName(), Labels: in.GetLabels(), Replicas: 1,
	}
	w.Never, _ = NamespaceRefusal(in.GetNamespace())
	if carriedOut[gvk.GroupKind()] {
		w.Never = fmt.Sprintf("Manifold carries out %s itself, in the logical cluster", gvk.Kind)
	}
	if text, ok := in.GetAnnotations()[v1alpha1.AnnotationClusters]; ok {
		pin, err := v1alpha1.ParsePin(text)
		if err != nil {
			return w, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationClusters, err)
		}
		w.Pin = &pin
	}
	return w, nil
}

// coversContent is Covers for what was decoded without a type, metadata and status aside. A list is one value: what only differs by what
// the cluster added to it is not known here, and an apply finds out.
func coversContent(desired, live map[string]any) bool {
	for key, want := range desired {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
			continue
		}
		have, ok := live[key]
		if !ok || !coversJSON(want, have) {
			return false
		}
	}
	return true
}

func coversJSON(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if there, ok := have[key]; !ok || !coversJSON(value, there) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(want) != len(have) {
			return false
		}
		for i := range want {
			if !coversJSON(want[i], have[i]) {
				return false
			}
		}
		return true
	}
	return sameScalar(want, have)
}

// sameScalar compares what JSON knows beside objects and lists. A number without a fraction may have been written as one with.
func sameScalar(want, have any) bool {
	if want == have {
		return true
	}
	a, isNumber := number(want)
	b, isToo := number(have)
	return isNumber && isToo && a == b
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}
