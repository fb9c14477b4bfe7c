package projection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// tokenVolume begins the name of the volume that an API server gives a pod with the token of its ServiceAccount, unless the pod has one.
const tokenVolume = "kube-api-access-"

// confine takes out of a finished projection by which what is made of it in the cluster would be taken for something else than it is: our
// marks on pods and claims, and what belongs to others there. Admission refuses all of it, but objects may be older, and overrides may
// bring it. The error is a *RefusedError.
func (k Kind) confine(out Object) error {
	if content, ok := out.(*unstructured.Unstructured); ok {
		confineContent(content.Object)
		return k.confineCustom(content)
	}
	refused := func(reason string) error {
		return &RefusedError{Kind: k.GVK.Kind, Namespace: out.GetNamespace(), Name: out.GetName(), Reason: reason}
	}
	if in, ok := out.(*networkingv1.Ingress); ok {
		if reason := confineIngress(in); reason != "" {
			return refused(reason)
		}
	}
	if NamespaceShared(out.GetNamespace()) {
		if what := strange(out); what != "" {
			return refused(strangeRefusal(out.GetNamespace(), what))
		}
	}
	if k.demand == nil {
		return nil
	}
	template, pods := podsOf(k, out)
	if template != nil {
		dropReserved(template)
	}
	for i := range pods.Volumes {
		if ephemeral := pods.Volumes[i].Ephemeral; ephemeral != nil && ephemeral.VolumeClaimTemplate != nil {
			dropReserved(&ephemeral.VolumeClaimTemplate.ObjectMeta)
		}
	}
	if set, ok := out.(*appsv1.StatefulSet); ok {
		for i := range set.Spec.VolumeClaimTemplates {
			dropReserved(&set.Spec.VolumeClaimTemplates[i].ObjectMeta)
		}
	}
	if reason := confinePods(out.GetNamespace(), pods); reason != "" {
		return refused(reason)
	}
	return nil
}

// confinePods returns why pods are refused in a namespace, or "".
func confinePods(namespace string, pods *corev1.PodSpec) string {
	if !NamespaceShared(namespace) {
		return ""
	}
	if what := strangePods(pods); what != "" {
		return strangeRefusal(namespace, what)
	}
	return confineAccount(namespace, pods)
}

// confineCustom refuses a custom object of which it is known that its pods would have the token of a ServiceAccount that is the cluster's, or what
// may be somebody else's. Their template is its operator's to read, and stays as it is.
func (k Kind) confineCustom(out *unstructured.Unstructured) error {
	if k.demand == nil || !NamespaceShared(out.GetNamespace()) {
		return nil
	}
	for pods := range k.demand(out).Pods() {
		if what := strangePods(&pods.Template.Spec); what != "" {
			return &RefusedError{Kind: k.GVK.Kind, Namespace: out.GetNamespace(), Name: out.GetName(), Reason: strangeRefusal(out.GetNamespace(), what)}
		}
		if spec := &pods.Template.Spec; accountOf(spec) == defaultServiceAccount && ptr.Deref(spec.AutomountServiceAccountToken, true) {
			return &RefusedError{Kind: k.GVK.Kind, Namespace: out.GetNamespace(), Name: out.GetName(), Reason: tokenRefusal(out.GetNamespace()) +
				", or set automountServiceAccountToken: false"}
		}
	}
	return nil
}

func tokenRefusal(namespace string) string {
	return fmt.Sprintf("in namespace %q the ServiceAccount %q is that of each cluster, whose token is not for its pods: "+
		"name a ServiceAccount of your own, or use another namespace", namespace, defaultServiceAccount)
}

func dropReserved(meta *metav1.ObjectMeta) {
	for _, pairs := range []map[string]string{meta.Labels, meta.Annotations} {
		maps.DeleteFunc(pairs, func(key, _ string) bool { return v1alpha1.ReservedKey(key) })
	}
}

// confineContent drops reserved keys from all labels and annotations in a custom resource but its own: its controller may give them to pods.
func confineContent(content map[string]any) {
	for key, value := range content {
		if key != "metadata" {
			confineValue(key, value)
		}
	}
}

func confineValue(key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if key == "labels" || key == "annotations" {
			maps.DeleteFunc(value, func(key string, _ any) bool { return v1alpha1.ReservedKey(key) })
		}
		for key, inner := range value {
			confineValue(key, inner)
		}
	case []any:
		for _, inner := range value {
			confineValue("", inner)
		}
	}
}

// accountOf returns the name of the ServiceAccount that pods run as.
func accountOf(pods *corev1.PodSpec) string {
	return cmp.Or(pods.ServiceAccountName, pods.DeprecatedServiceAccount, defaultServiceAccount)
}

// confineAccount keeps pods that name no ServiceAccount from the token of the one that a namespace which is not ours has in the cluster: whoever
// uses it there may have given that one rights. It returns why it cannot be kept from them, or "".
func confineAccount(namespace string, pods *corev1.PodSpec) string {
	if accountOf(pods) != defaultServiceAccount {
		return ""
	}
	refusal := tokenRefusal(namespace)
	if ptr.Deref(pods.AutomountServiceAccountToken, false) {
		return refusal
	}
	pods.AutomountServiceAccountToken = ptr.To(false)
	dropped := map[string]bool{}
	pods.Volumes = slices.DeleteFunc(pods.Volumes, func(v corev1.Volume) bool {
		dropped[v.Name] = strings.HasPrefix(v.Name, tokenVolume) && bringsToken(&v)
		return dropped[v.Name]
	})
	if slices.ContainsFunc(pods.Volumes, func(v corev1.Volume) bool { return bringsToken(&v) }) {
		return refusal
	}
	for _, c := range slices.Concat(pointers(pods.InitContainers), pointers(pods.Containers)) {
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
	}
	return ""
}

// bringsToken reports whether a volume has a token for the API server of the cluster.
func bringsToken(volume *corev1.Volume) bool {
	return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.ServiceAccountToken != nil && !callsLogical(s.ServiceAccountToken)
	})
}
