package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

const (
	// mostCustomPods bounds the replicas of a custom object, and the pods of each, so that sums over many of them stay numbers.
	mostCustomPods = 1_000_000
	// mostTemplateValues bounds how many values a pod template has that anybody decodes. Real ones have some hundreds.
	mostTemplateValues = 50_000
)

// PodPaths say where objects of a custom kind have what their pods are made of. Nil stands for a kind of which nobody knows.
type PodPaths struct {
	templates                   [][]string
	each, replicas, statusCount []string
	divisible                   bool
	text                        v1alpha1.CustomWorkload
}

// PodPathsOf reads a description that validation has let through.
func PodPathsOf(in *v1alpha1.CustomWorkload) *PodPaths {
	out := &PodPaths{
		each: fieldsOf(in.PodsPerReplicaPath), replicas: fieldsOf(in.SpecReplicasPath), statusCount: fieldsOf(in.StatusReplicasPath),
		divisible: in.Divisible, text: *in.DeepCopy(),
	}
	for _, path := range in.PodTemplatePaths {
		out.templates = append(out.templates, fieldsOf(path))
	}
	return out
}

func fieldsOf(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

// Same reports whether two descriptions say the same.
func (p *PodPaths) Same(other *PodPaths) bool {
	if p == nil || other == nil {
		return p == other
	}
	a, b := p.text, other.text
	return slices.Equal(a.PodTemplatePaths, b.PodTemplatePaths) && a.PodsPerReplicaPath == b.PodsPerReplicaPath &&
		a.SpecReplicasPath == b.SpecReplicasPath && a.StatusReplicasPath == b.StatusReplicasPath && a.Divisible == b.Divisible
}

// CustomObject is an object of a custom kind as far as placement and its dependents are about it. What its paths name was decoded once, when it
// was read; nothing else of it is kept.
type CustomObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	demand Demand
}

// DeepCopyObject implements runtime.Object. What was decoded never changes, and is shared.
func (o *CustomObject) DeepCopyObject() runtime.Object {
	out := &CustomObject{TypeMeta: o.TypeMeta, demand: o.demand}
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// Read decodes what an object says of its pods. What it says wrong is the Problem of its Demand.
func (p *PodPaths) Read(in *unstructured.Unstructured) *CustomObject {
	out := &CustomObject{
		TypeMeta: metav1.TypeMeta{APIVersion: in.GetAPIVersion(), Kind: in.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.GetNamespace(), Name: in.GetName(), UID: in.GetUID(),
			ResourceVersion: in.GetResourceVersion(), Generation: in.GetGeneration(), CreationTimestamp: in.GetCreationTimestamp(),
			DeletionTimestamp: in.GetDeletionTimestamp(), DeletionGracePeriodSeconds: in.GetDeletionGracePeriodSeconds(),
			Finalizers: in.GetFinalizers(), OwnerReferences: in.GetOwnerReferences(),
			Labels: in.GetLabels(), Annotations: in.GetAnnotations(),
		},
	}
	out.demand = p.demand(in)
	return out
}

// demand reads what an object asks of the clusters. With a problem it asks for nothing.
func (p *PodPaths) demand(in *unstructured.Unstructured) Demand {
	out, err := p.tryDemand(in)
	if err != nil {
		return Demand{Template: &corev1.PodTemplateSpec{}, Problem: err}
	}
	return out
}

func (p *PodPaths) tryDemand(in *unstructured.Unstructured) (Demand, error) {
	out := Demand{Division: placement.Indivisible}
	if p.divisible {
		out.Division = placement.DivisibleByName
	}
	pods, err := p.pods(in.Object)
	if err != nil {
		return out, err
	}
	if out.Replicas, err = numberAt(in.Object, p.replicas, 1); err != nil {
		return out, err
	}
	out.Template, out.Each, out.Beside = pods[0].Template, pods[0].Each, pods[1:]
	if all := out.PodsEach() * int64(out.Replicas); all > mostCustomPods {
		return out, fmt.Errorf("it asks for %d pods, of which there may be %d", all, mostCustomPods)
	}
	out.Arrived = p.arrived(in.Object, out.Replicas)
	return out, nil
}

// pods returns the templates that an object has, with how many pods of each replica are made of each.
func (p *PodPaths) pods(content map[string]any) ([]Pods, error) {
	var out []Pods
	for _, path := range p.templates {
		template, err := templateAt(content, path)
		if err != nil {
			return nil, err
		}
		if template != nil {
			out = append(out, Pods{Template: template, Each: 1})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no pod template at %s", strings.Join(p.text.PodTemplatePaths, " or "))
	}
	size, err := numberAt(content, p.each, int32(len(out)))
	if err != nil {
		return nil, err
	}
	size = max(size, 1)
	out = out[:min(len(out), int(size))] // a replica of fewer pods than templates has those of the first
	out[len(out)-1].Each = size - int32(len(out)-1)
	return out, nil
}

// arrived is how many replicas a status says are there, if its paths tell: it is a cluster's word, which counts for no more than was asked for.
func (p *PodPaths) arrived(content map[string]any, replicas int32) int32 {
	if p.statusCount == nil {
		return 0
	}
	count, err := numberAt(content, p.statusCount, 0)
	if err != nil {
		return 0
	}
	return min(count, replicas)
}

// Arrived is how many replicas the status of one cluster's copy says are there, false if nobody knows where it would say so.
func (p *PodPaths) Arrived(status map[string]any) (count int32, told bool) {
	if p == nil || p.statusCount == nil {
		return 0, false
	}
	return p.arrived(map[string]any{"status": status}, mostCustomPods), true
}

// fill gives the projection of an object that may be divided the share of its cluster.
func (p *PodPaths) fill(out map[string]any, share placement.Share) {
	if p.divisible {
		// What is in the way would have been a Problem of the demand.
		_ = unstructured.SetNestedField(out, int64(share.Replicas), p.replicas...)
	}
}

func pathText(fields []string) string { return "." + strings.Join(fields, ".") }

// valueAt returns what an object has at a path, nil if it has nothing there.
func valueAt(content map[string]any, fields []string) any {
	var at any = content
	for _, name := range fields {
		inside, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = inside[name]
	}
	return at
}

// numberAt returns a number of replicas or of pods. A definition may say little of the field, so it may be anything.
func numberAt(content map[string]any, fields []string, otherwise int32) (int32, error) {
	if fields == nil {
		return otherwise, nil
	}
	switch value := valueAt(content, fields).(type) {
	case nil:
		return otherwise, nil
	case int64:
		if value >= 0 && value <= mostCustomPods {
			return int32(value), nil
		}
		return 0, fmt.Errorf("%s: %d is not a number from 0 to %d", pathText(fields), value, mostCustomPods)
	case float64:
		if value >= 0 && value <= mostCustomPods && value == float64(int32(value)) {
			return int32(value), nil
		}
		return 0, fmt.Errorf("%s: %v is not a whole number from 0 to %d", pathText(fields), value, mostCustomPods)
	}
	return 0, fmt.Errorf("%s is not a number", pathText(fields))
}

// templateAt decodes a pod template, which is somebody's JSON: a definition need not say what it is. It returns nil if there is none.
func templateAt(content map[string]any, fields []string) (*corev1.PodTemplateSpec, error) {
	value := valueAt(content, fields)
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a pod template: it is no object", pathText(fields))
	}
	if budget := mostTemplateValues; !within(object, &budget) {
		return nil, fmt.Errorf("%s is too large for a pod template: it has more than %d values", pathText(fields), mostTemplateValues)
	}
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, template); err != nil {
		return nil, fmt.Errorf("%s is not a pod template: %w", pathText(fields), err)
	}
	if len(template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s is not a pod template: it has no containers", pathText(fields))
	}
	if err := completeRequests(&template.Spec); err != nil {
		return nil, fmt.Errorf("%s: %w", pathText(fields), err)
	}
	return template, nil
}

// within reports whether a value has no more values in it than a budget has left.
func within(value any, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if !within(inner, budget) {
				return false
			}
		}
	case []any:
		for _, inner := range value {
			if !within(inner, budget) {
				return false
			}
		}
	}
	return true
}

var errNegative = errors.New("it requests a negative amount")

// completeRequests gives containers the requests that an API server derives from their limits when it makes a pod.
func completeRequests(pods *corev1.PodSpec) error {
	for _, c := range slices.Concat(pointers(pods.InitContainers), pointers(pods.Containers)) {
		for name, limit := range c.Resources.Limits {
			if _, has := c.Resources.Requests[name]; has {
				continue
			}
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit.DeepCopy()
		}
		for _, request := range c.Resources.Requests {
			if request.Sign() < 0 {
				return errNegative
			}
		}
	}
	return nil
}
