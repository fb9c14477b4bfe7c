package render

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/ordering"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// Render makes objects of what has been gathered with the same options. The context ends it between its steps, not within one.
func Render(ctx context.Context, bundle *Bundle, options Options) (_ *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: rendering stops with %v", ErrInvalid, r)
		}
	}()
	limits := options.Limits.withDefaults()
	out := &Result{Kind: bundle.Kind}
	var objects []parsed
	switch bundle.Kind {
	case Kustomize:
		objects, err = kustomize(bundle, limits)
	case Helm:
		objects, out.Chart, out.Warnings, err = chart(bundle, options, limits)
	default:
		objects, out.Warnings, err = plain(bundle, limits)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	objects, warnings, err := patched(objects, options.Patches, limits)
	if err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, warnings...)
	warnings, err = settle(objects, options, scopes(objects, options.ClusterScoped))
	if err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, warnings...)
	out.Objects = ordered(objects)
	for _, object := range out.Objects {
		if object.GetNamespace() == "" {
			out.ClusterScoped = append(out.ClusterScoped, NameOf(object))
		}
	}
	out.Images = imagesOf(out.Objects)
	return out, bounded(out.Objects, limits)
}

// bounded refuses objects that are too many, or too large together.
func bounded(objects []*unstructured.Unstructured, limits Limits) error {
	if len(objects) > limits.Objects {
		return fmt.Errorf("%w: %d objects, and %d are allowed", ErrTooLarge, len(objects), limits.Objects)
	}
	var size int64
	for _, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalid, NameOf(object), err)
		}
		if size += int64(len(content)); size > limits.Output {
			return fmt.Errorf("%w: the objects have over %d bytes", ErrTooLarge, limits.Output)
		}
	}
	return nil
}

// scopes returns what says of a kind whether it is in a namespace: Kubernetes' own kinds, those given, and those defined among the objects.
func scopes(objects []parsed, given []schema.GroupKind) func(*unstructured.Unstructured) (namespaced bool) {
	clusterScoped := map[schema.GroupKind]bool{}
	for _, kind := range given {
		clusterScoped[kind] = true
	}
	for _, p := range objects {
		if gk := p.object.GroupVersionKind().GroupKind(); gk != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		group, _, _ := unstructured.NestedString(p.object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(p.object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(p.object.Object, "spec", "scope")
		clusterScoped[schema.GroupKind{Group: group, Kind: kind}] = scope == "Cluster"
	}
	return func(object *unstructured.Unstructured) bool {
		gvk := object.GroupVersionKind()
		if cluster, known := clusterScoped[gvk.GroupKind()]; known {
			return !cluster
		}
		return !resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind).IsClusterScoped()
	}
}

// settle gives objects their namespaces and takes away what only servers write. It refuses objects without a name, in namespaces that they may
// not be in, and the same object twice.
func settle(objects []parsed, options Options, namespaced func(*unstructured.Unstructured) bool) (warnings []string, err error) {
	seen := map[ObjectName]string{}
	for _, p := range objects {
		object := p.object
		name := NameOf(object)
		switch {
		case object.GetName() == "":
			return nil, fmt.Errorf("%w: %s has no name (%s)", ErrInvalid, strings.TrimSpace(name.String()), p.from)
		case !namespaced(object) && name.Namespace != "":
			warnings = append(warnings, fmt.Sprintf("%s is in no namespace: the one that it names does not count", name))
			object.SetNamespace("")
		case !namespaced(object):
		case name.Namespace == "":
			object.SetNamespace(options.Namespace)
		case name.Namespace != options.Namespace && !options.OtherNamespaces:
			return nil, fmt.Errorf("%w: %s is not in the application's namespace, %q (%s)", ErrInvalid, name, options.Namespace, p.from)
		}
		name = NameOf(object)
		if before, twice := seen[name]; twice {
			return nil, fmt.Errorf("%w: %s is there twice: in %s and in %s", ErrInvalid, name, before, p.from)
		}
		seen[name] = p.from
		for _, field := range serverFields {
			unstructured.RemoveNestedField(object.Object, field...)
		}
	}
	return warnings, nil
}

// serverFields are those that only servers write. They are part of manifests that somebody has read from a cluster.
var serverFields = [][]string{
	{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "managedFields"},
	{"metadata", "creationTimestamp"}, {"metadata", "selfLink"},
}

// ordered returns objects in the order in which they are to be applied.
func ordered(objects []parsed) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, p := range objects {
		out[i] = p.object
	}
	sort.Sort(ordering.SortableUnstructureds(out))
	return out
}
