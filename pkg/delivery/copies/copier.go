package copies

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// copier makes the objects of one variant.
type copier struct {
	Options
	variant string
	// suffix is what the names of the workloads, and of the ConfigMaps and Secrets that these refer to, end in, and front what that of the Service does,
	// by which routes know the variant in every cluster.
	suffix, front string
	// taken are the names that the application itself has.
	taken map[string]bool
}

// rename returns a copy of an object under a name of its own, with the label of the variant.
func (c copier) rename(object *unstructured.Unstructured, suffix string) (*unstructured.Unstructured, error) {
	name, err := nameFor(object, suffix)
	if err != nil {
		return nil, err
	}
	out := object.DeepCopy()
	out.SetName(name)
	if c.taken[Key(out)] {
		return nil, field.Duplicate(field.NewPath("suffix"), fmt.Sprintf("%s is the application's own", Key(out)))
	}
	return out, setLabel(out, c.label(), c.value(c.variant), "metadata", "labels")
}

// service returns a Service that leads to the variant from inside the cluster: nothing outside knows it.
func (c copier) service(service *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := c.rename(service, c.front)
	if err != nil {
		return nil, err
	}
	selector, _, err := unstructured.NestedStringMap(out.Object, "spec", "selector")
	if err != nil || len(selector) == 0 {
		return nil, field.Required(field.NewPath("spec", "selector"), fmt.Sprintf("%s leads to no pods of its own", Key(service)))
	}
	if err := setLabel(out, c.label(), c.value(c.variant), "spec", "selector"); err != nil {
		return nil, err
	}
	for _, outside := range []string{
		"clusterIP", "clusterIPs", "externalIPs", "externalName", "externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass",
		"loadBalancerIP", "loadBalancerSourceRanges", "allocateLoadBalancerNodePorts",
	} {
		if ip, _, _ := unstructured.NestedString(out.Object, "spec", outside); outside == "clusterIP" && ip == "None" {
			continue // it stays headless
		}
		unstructured.RemoveNestedField(out.Object, "spec", outside)
	}
	if ports, is, _ := unstructured.NestedSlice(out.Object, "spec", "ports"); is {
		for _, port := range ports {
			if entry, is := port.(map[string]any); is {
				delete(entry, "nodePort")
			}
		}
		if err := unstructured.SetNestedSlice(out.Object, ports, "spec", "ports"); err != nil {
			return nil, err
		}
	}
	unstructured.RemoveNestedField(out.Object, "status")
	return out, unstructured.SetNestedField(out.Object, "ClusterIP", "spec", "type")
}

// workload returns a copy of a workload. What it refers to of the ConfigMaps and Secrets is used, and has the name of the copy.
func (c copier) workload(workload *unstructured.Unstructured, replicas int32, configs map[string]*unstructured.Unstructured, used map[string]bool) (*unstructured.Unstructured, error) {
	out, err := c.rename(workload, c.suffix)
	if err != nil {
		return nil, err
	}
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
		if err := setLabel(out, c.label(), c.value(c.variant), path...); err != nil {
			return nil, err
		}
	}
	if err := unstructured.SetNestedField(out.Object, int64(replicas), "spec", "replicas"); err != nil {
		return nil, field.Invalid(field.NewPath("spec"), Key(workload), err.Error())
	}
	unstructured.RemoveNestedField(out.Object, "status")
	if template, is := at(out.Object, "spec", "template", "spec"); is {
		refer(template, func(kind, name string) string {
			key := kind + "/" + name
			if configs[key] == nil {
				return name
			}
			used[key] = true
			return name + c.suffix
		})
	}
	return out, nil
}

// refer replaces the names of ConfigMaps and Secrets in a pod's spec.
func refer(pod map[string]any, replace func(kind, name string) string) {
	rename := func(object map[string]any, field, kind string) {
		if name, is := object[field].(string); is && name != "" {
			object[field] = replace(kind, name)
		}
	}
	both := func(object map[string]any, configMap, secret string) {
		if ref, is := at(object, configMap); is {
			rename(ref, "name", "ConfigMap")
		}
		if ref, is := at(object, secret); is {
			rename(ref, "name", "Secret")
		}
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range each(pod[list]) {
			for _, env := range each(container["env"]) {
				if from, is := at(env, "valueFrom"); is {
					both(from, "configMapKeyRef", "secretKeyRef")
				}
			}
			for _, env := range each(container["envFrom"]) {
				both(env, "configMapRef", "secretRef")
			}
		}
	}
	for _, volume := range each(pod["volumes"]) {
		if ref, is := at(volume, "configMap"); is {
			rename(ref, "name", "ConfigMap")
		}
		if ref, is := at(volume, "secret"); is {
			rename(ref, "secretName", "Secret")
		}
		if projected, is := at(volume, "projected"); is {
			for _, source := range each(projected["sources"]) {
				both(source, "configMap", "secret")
			}
		}
	}
}

// at returns the object at a path, itself and no copy.
func at(object map[string]any, path ...string) (map[string]any, bool) {
	for _, name := range path {
		next, is := object[name].(map[string]any)
		if !is {
			return nil, false
		}
		object = next
	}
	return object, true
}

// each returns the objects in a list, themselves and no copies.
func each(list any) []map[string]any {
	entries, _ := list.([]any)
	var out []map[string]any
	for _, entry := range entries {
		if object, is := entry.(map[string]any); is {
			out = append(out, object)
		}
	}
	return out
}
