package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/internal/imageref"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Overrides are the changes that a policy makes to what one cluster holds of a workload.
type Overrides struct {
	// Policy names the policy, for messages.
	Policy string
	// Items are those of its overrides that select the cluster, by their number in the policy.
	Items []Override
}

// Override is one of them.
type Override struct {
	// Index is its number in the policy, from 0 on.
	Index int
	v1alpha1.Override
}

// OverridesFor returns those of a policy for a cluster with these labels. The policy may be nil.
func OverridesFor(policy *placement.Policy, cluster string, clusterLabels map[string]string) (Overrides, error) {
	if policy == nil || len(policy.Spec.Overrides) == 0 {
		return Overrides{}, nil
	}
	out := Overrides{Policy: policy.String()}
	for i, o := range policy.Spec.Overrides {
		selected, err := selectsCluster(o.Clusters, cluster, clusterLabels)
		if err != nil {
			return Overrides{}, fmt.Errorf("overrides[%d] of %s: clusters.labelSelector: %w", i, out.Policy, err)
		}
		if selected {
			out.Items = append(out.Items, Override{i, o})
		}
	}
	return out, nil
}

func selectsCluster(s *v1alpha1.ClusterSelector, cluster string, clusterLabels map[string]string) (bool, error) {
	if s == nil {
		return true, nil
	}
	selector := labels.Everything()
	if s.LabelSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			return false, err
		}
	}
	return (len(s.Names) == 0 || slices.Contains(s.Names, cluster)) && selector.Matches(labels.Set(clusterLabels)), nil
}

// apply returns out with the overrides applied, which may be another object then. What Manifold decides itself may not be changed.
func (o Overrides) apply(k Kind, out Object) (Object, error) {
	if len(o.Items) == 0 {
		return out, nil
	}
	before := protectedOf(k, out)
	for _, item := range o.Items {
		var err error
		if out, err = item.apply(k, out); err != nil {
			return nil, fmt.Errorf("overrides[%d] of %s: %w", item.Index, o.Policy, err)
		}
		if field := before.differs(protectedOf(k, out)); field != "" {
			return nil, fmt.Errorf("overrides[%d] of %s: it may not change %s", item.Index, o.Policy, field)
		}
	}
	return out, nil
}

func (o *Override) apply(k Kind, out Object) (Object, error) {
	template, pods := podsOf(k, out)
	containers := append(pointers(pods.InitContainers), pointers(pods.Containers)...)
	for _, image := range o.Images {
		for _, c := range containersOf(containers, image.Containers) {
			c.Image = overrideImage(c.Image, image)
		}
	}
	for _, env := range o.Env {
		for _, c := range containersOf(containers, env.Containers) {
			c.Env = setVariables(c.Env, env.Variables)
		}
	}
	for _, args := range o.Args {
		for _, c := range containersOf(containers, args.Containers) {
			c.Args = slices.Clone(args.Args)
		}
	}
	out.SetLabels(merged(out.GetLabels(), o.Labels))
	out.SetAnnotations(merged(out.GetAnnotations(), o.Annotations))
	if template != nil {
		template.Labels = merged(template.Labels, o.Labels)
		template.Annotations = merged(template.Annotations, o.Annotations)
	}
	return o.patch(k, out)
}

// patch applies the two kinds of patches.
func (o *Override) patch(k Kind, out Object) (Object, error) {
	merge, err := validation.ParseMergePatch(o.StrategicMergePatch)
	if err != nil {
		return nil, fmt.Errorf("strategicMergePatch: %w", err)
	}
	operations, err := validation.ParseJSONPatch(o.JSONPatch)
	if err != nil {
		return nil, fmt.Errorf("jsonPatch: %w", err)
	}
	if merge == nil && operations == nil {
		return out, nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	before := data
	if merge != nil {
		if data, err = strategicpatch.StrategicMergePatch(data, merge, k.New()); err != nil {
			return nil, fmt.Errorf("strategicMergePatch: %w", err)
		}
	}
	if operations != nil {
		if data, err = operations.Apply(data); err != nil {
			return nil, fmt.Errorf("jsonPatch: %w", err)
		}
	}
	if field, err := foreignChange(before, data); err != nil {
		return nil, err
	} else if field != "" {
		return nil, fmt.Errorf("the patches may not change %s", field)
	}
	patched := k.New()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(patched); err != nil {
		return nil, fmt.Errorf("what the patches leave is no %s: %w", k.GVK.Kind, err)
	}
	return patched, nil
}

// foreignChange names what patches have changed of an object that is not the user's to say of what a cluster holds: which object it is, who
// holds or owns it, and how it fares; "" if nothing.
func foreignChange(before, after []byte) (string, error) {
	was, err := fixedOf(before)
	if err != nil {
		return "", err
	}
	is, err := fixedOf(after)
	if err != nil {
		return "", err
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status", "completions"} {
		switch {
		case reflect.DeepEqual(was[field], is[field]):
		case field == "metadata":
			return "metadata other than labels and annotations", nil
		case field == "completions":
			return "the number of completions, which the decision says", nil
		default:
			return field, nil
		}
	}
	return "", nil
}

// fixedOf is what of an object patches may not change, without what is null. The name is told elsewhere, and so is the number of
// replicas.
func fixedOf(data []byte) (map[string]any, error) {
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("what the patches leave is no object: %w", err)
	}
	metadata, _ := out["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations", "name", "namespace"} {
		delete(metadata, field)
	}
	maps.DeleteFunc(metadata, func(_ string, value any) bool { return value == nil })
	if spec, is := out["spec"].(map[string]any); is {
		out["completions"] = spec["completions"]
	}
	return out, nil
}

// podsOf is what an object says of its pods: their metadata, nil for a pod, which has its own, and their spec. Both belong to the object.
func podsOf(k Kind, out Object) (*metav1.ObjectMeta, *corev1.PodSpec) {
	if pod, ok := out.(*corev1.Pod); ok {
		return nil, &pod.Spec // the template that it demands is made for the question
	}
	template := k.Demand(out).Template
	return &template.ObjectMeta, &template.Spec
}

func pointers(containers []corev1.Container) []*corev1.Container {
	out := make([]*corev1.Container, len(containers))
	for i := range containers {
		out[i] = &containers[i]
	}
	return out
}

// containersOf are the containers of these names; all if there are none.
func containersOf(containers []*corev1.Container, names []string) []*corev1.Container {
	if len(names) == 0 {
		return containers
	}
	return slices.DeleteFunc(slices.Clone(containers), func(c *corev1.Container) bool { return !slices.Contains(names, c.Name) })
}

// setVariables returns env with the variables set: in their place where there are such, else at the end.
func setVariables(env, variables []corev1.EnvVar) []corev1.EnvVar {
	for _, variable := range variables {
		variable = *variable.DeepCopy()
		if i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }); i >= 0 {
			env[i] = variable
		} else {
			env = append(env, variable)
		}
	}
	return env
}

func merged(one, other map[string]string) map[string]string {
	if len(other) == 0 {
		return one
	}
	out := make(map[string]string, len(one)+len(other))
	maps.Copy(out, one)
	maps.Copy(out, other)
	return out
}

// overrideImage replaces parts of an image. What stands before the first slash is a registry if it looks like a host.
func overrideImage(image string, by v1alpha1.ImageOverride) string {
	rest := imageref.Parse(image).Name
	version := image[len(rest):]
	registry, repository := "", rest
	if host, path, found := strings.Cut(rest, "/"); found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		registry, repository = host, path
	}
	if by.Registry != "" {
		registry = by.Registry
	}
	if by.Repository != "" {
		repository = by.Repository
	}
	if by.Tag != "" {
		version = ":" + by.Tag
	}
	if registry != "" {
		repository = registry + "/" + repository
	}
	return repository + version
}

// protected is what no override may change.
type protected struct {
	namespace, name string
	replicas, first int32
	marks           map[string]string
}

func protectedOf(k Kind, o Object) protected {
	demand := k.Demand(o)
	p := protected{namespace: o.GetNamespace(), name: o.GetName(), replicas: demand.Replicas, first: demand.First, marks: map[string]string{}}
	for _, pairs := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range pairs {
			if strings.HasPrefix(key, annotationDomain) {
				p.marks[key] = value
			}
		}
	}
	return p
}

// differs names what differs; "" if nothing does.
func (p protected) differs(other protected) string {
	switch {
	case p.name != other.name || p.namespace != other.namespace:
		return "the name"
	case p.replicas != other.replicas || p.first != other.first:
		return "the number of replicas, which the decision says"
	case !maps.Equal(p.marks, other.marks):
		return "labels and annotations of " + strings.TrimSuffix(annotationDomain, "/")
	}
	return ""
}
