package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// changeable is what webhooks of the logical cluster may change of a pod that a controller makes.
type changeable struct {
	Metadata changeableMeta `json:"metadata"`
	Spec     corev1.PodSpec `json:"spec"`
}

type changeableMeta struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty" patchStrategy:"merge"`
}

func changeableOf(pod *corev1.Pod) changeable {
	return changeable{changeableMeta{pod.Labels, pod.Annotations, pod.Finalizers}, pod.Spec}
}

// Change returns what webhooks have changed of a pod, as a strategic merge patch; nil if it is nothing. The error says what they cannot change.
func Change(before, after *corev1.Pod) ([]byte, error) {
	if err := checkChange(before, after); err != nil {
		return nil, err
	}
	was, err := json.Marshal(changeableOf(before))
	if err != nil {
		return nil, fmt.Errorf("encode the pod: %w", err)
	}
	is, err := json.Marshal(changeableOf(after))
	if err != nil {
		return nil, fmt.Errorf("encode the pod as it was changed: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(was, is, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare the pod with what was changed: %w", err)
	}
	if bytes.Equal(patch, []byte("{}")) {
		return nil, nil
	}
	return patch, nil
}

// checkChange returns what of a change nobody carries out: where the pod runs and whose it is, and what is Manifold's.
func checkChange(before, after *corev1.Pod) error {
	switch {
	case after.Name != before.Name || after.GenerateName != before.GenerateName || after.Namespace != before.Namespace:
		return errors.New("metadata.name: a webhook cannot change it")
	case !slices.EqualFunc(after.OwnerReferences, before.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID && a.Name == b.Name }):
		return errors.New("metadata.ownerReferences: a webhook cannot change them, a controller in the cluster decides whose the pod is")
	case slices.ContainsFunc(after.Finalizers, func(f string) bool { return (meansAbove(f) || Reserved(f)) && !slices.Contains(before.Finalizers, f) }):
		return fmt.Errorf("metadata.finalizers: %q are not all a webhook's to add", after.Finalizers)
	case after.Spec.NodeName != before.Spec.NodeName:
		return errors.New("spec.nodeName: a webhook cannot change it, the cluster decides on which of its nodes the pod runs")
	case len(after.Spec.EphemeralContainers) > 0:
		return errors.New("spec.ephemeralContainers: a pod cannot begin with any")
	}
	for _, pairs := range [][2]map[string]string{{before.Labels, after.Labels}, {before.Annotations, after.Annotations}} {
		for key, value := range pairs[1] {
			if was, had := pairs[0][key]; Reserved(key) && (!had || was != value) {
				return fmt.Errorf("metadata: %s is reserved for Manifold", key)
			}
		}
		for key := range pairs[0] {
			if _, has := pairs[1][key]; Reserved(key) && !has {
				return fmt.Errorf("metadata: %s is reserved for Manifold", key)
			}
		}
	}
	return nil
}

// ApplyChange returns the JSON of a pod with a change, and keeps what of the pod this version does not know.
func ApplyChange(pod, change []byte) ([]byte, error) {
	out, err := strategicpatch.StrategicMergePatch(pod, change, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("change the pod: %w", err)
	}
	return out, nil
}

// changed returns a pod with what webhooks of the logical cluster have changed. A change that does not fit, as of another template, counts for
// nothing.
func (o Owner) changed(made *corev1.Pod) *corev1.Pod {
	if len(o.Change) == 0 {
		return made
	}
	before, err := json.Marshal(changeableOf(made))
	if err != nil {
		return made
	}
	after, err := ApplyChange(before, o.Change)
	if err != nil {
		return made
	}
	var out changeable
	if json.Unmarshal(after, &out) != nil {
		return made
	}
	dropParts(&out.Spec, &made.Spec)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: Unreserved(out.Metadata.Labels), Finalizers: out.Metadata.Finalizers}, Spec: out.Spec}
}

// dropParts takes out of a changed template what was changed of something that only the cluster has added: of that a change has no more than a part,
// and the mirror shows the rest as it does anyway.
func dropParts(out, template *corev1.PodSpec) {
	volumes := namesOf(template.Volumes, volumeName)
	out.Volumes = slices.DeleteFunc(out.Volumes, func(v corev1.Volume) bool { return !volumes[v.Name] && v.VolumeSource == corev1.VolumeSource{} })
	for _, lists := range []struct{ out, template *[]corev1.Container }{{&out.InitContainers, &template.InitContainers}, {&out.Containers, &template.Containers}} {
		known := namesOf(*lists.template, containerName)
		*lists.out = slices.DeleteFunc(*lists.out, func(c corev1.Container) bool { return !known[c.Name] && c.Image == "" })
		for i := range *lists.out {
			c := &(*lists.out)[i]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "" })
		}
	}
}
