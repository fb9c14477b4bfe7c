package projection

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// service leaves out what an API server allocates: addresses, their families, ports of nodes. Every cluster allocates its own. What
// somebody chose stays, and a cluster that cannot have it says so.
var service = row[corev1.Service, *corev1.Service]{
	resource:   corev1.SchemeGroupVersion.WithResource("services"),
	kind:       "Service",
	namespaced: true,
	right:      rightBeside,
	delivered:  Selected,
	fill: func(in, out *corev1.Service, part Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		chosen, written := fixedFields(in), writtenPorts(in)
		if !headless(in) {
			out.Spec.ClusterIPs = nil // they begin with that one
			if !chosen.has("spec", "clusterIP") && !chosen.has("spec", "clusterIPs") {
				out.Spec.ClusterIP = ""
			}
		}
		if !chosen.has("spec", "ipFamilies") {
			out.Spec.IPFamilies = nil
		}
		if !chosen.has("spec", "healthCheckNodePort") {
			out.Spec.HealthCheckNodePort = 0
		}
		for i := range out.Spec.Ports {
			port := &out.Spec.Ports[i]
			if !chosen.has("spec", "ports", fieldpath.KeyByFields("port", int64(port.Port), "protocol", string(port.Protocol)), "nodePort") &&
				!slices.Contains(written, port.NodePort) {
				port.NodePort = 0
			}
		}
		if part.Inward {
			inward(out)
		}
	},
	carry:    carryService,
	selector: podSelector,
	// What a Service without a selector stands for, an outside name or endpoints that somebody writes, any pod may ask for.
	general: func(in *corev1.Service) bool {
		return len(in.Spec.Selector) == 0 || in.Spec.Type == corev1.ServiceTypeExternalName
	},
	managers: true,
	refuse:   func(in *corev1.Service) string { return ofTheAPIServer(in.Namespace, in.Name) },
	// An API server changes the cluster IP of a Service only together with its type, to or from ExternalName.
	replace: func(desired, live *corev1.Service) string {
		if desired.Spec.Type == corev1.ServiceTypeExternalName || live.Spec.Type == corev1.ServiceTypeExternalName {
			return ""
		}
		chosen := desired.Spec.ClusterIP != "" && live.Spec.ClusterIP != "" && desired.Spec.ClusterIP != live.Spec.ClusterIP
		if chosen || headless(desired) != headless(live) {
			return "spec.clusterIP"
		}
		return ""
	},
}

// writtenPorts returns the ports of nodes in the manifest that "kubectl apply" has noted. Of a port that was allocated, and then written into the
// manifest to keep it, managed fields tell nothing: applying that changes no value.
func writtenPorts(in *corev1.Service) []int32 {
	var manifest struct {
		Spec struct {
			Ports []struct {
				NodePort int32 `json:"nodePort"`
			} `json:"ports"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(in.Annotations[corev1.LastAppliedConfigAnnotation]), &manifest); err != nil {
		return nil // There is none, or it is no manifest, and chooses nothing.
	}
	var out []int32
	for _, port := range manifest.Spec.Ports {
		out = append(out, port.NodePort)
	}
	return out
}

// carryService gives the content of a revision what the API server of the logical cluster has allocated, as far as the content does not choose it.
func carryService(in, out *corev1.Service) {
	if out.Spec.ClusterIP == "" && out.Spec.Type != corev1.ServiceTypeExternalName && !headless(in) {
		out.Spec.ClusterIP, out.Spec.ClusterIPs = in.Spec.ClusterIP, in.Spec.ClusterIPs
	}
	if len(out.Spec.IPFamilies) == 0 {
		out.Spec.IPFamilies = in.Spec.IPFamilies
	}
	if out.Spec.HealthCheckNodePort == 0 {
		out.Spec.HealthCheckNodePort = in.Spec.HealthCheckNodePort
	}
	out.Spec.Ports = slices.Clone(out.Spec.Ports)
	for i := range out.Spec.Ports {
		port := &out.Spec.Ports[i]
		same := func(other corev1.ServicePort) bool { return other.Port == port.Port && other.Protocol == port.Protocol }
		if j := slices.IndexFunc(in.Spec.Ports, same); j >= 0 && port.NodePort == 0 {
			port.NodePort = in.Spec.Ports[j].NodePort
		}
	}
}

func headless(in *corev1.Service) bool { return in.Spec.ClusterIP == corev1.ClusterIPNone }

// podSelector is nil for a Service without a selector, which selects no pods: its endpoints are someone else's to write.
func podSelector(in *corev1.Service) *metav1.LabelSelector {
	if len(in.Spec.Selector) == 0 || in.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: in.Spec.Selector}
}
