package projection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// service leaves out what each cluster allocates for itself: addresses, their families, node ports. A headless Service stays one.
var service = row[corev1.Service, *corev1.Service]{
	resource:   corev1.SchemeGroupVersion.WithResource("services"),
	kind:       "Service",
	namespaced: true,
	fill: func(in, out *corev1.Service, _ Part) {
		in.Spec.DeepCopyInto(&out.Spec)
		if !headless(in) {
			out.Spec.ClusterIP, out.Spec.ClusterIPs = "", nil
		}
		out.Spec.IPFamilies = nil
		out.Spec.HealthCheckNodePort = 0
		for i := range out.Spec.Ports {
			out.Spec.Ports[i].NodePort = 0
		}
	},
	selects: selectsPods,
	// What a Service without a selector stands for, an outside name or endpoints that somebody writes, any pod may ask for.
	general: func(in *corev1.Service) bool {
		return len(in.Spec.Selector) == 0 || in.Spec.Type == corev1.ServiceTypeExternalName
	},
	refuse: func(in *corev1.Service) string {
		if in.Namespace == metav1.NamespaceDefault && in.Name == "kubernetes" {
			return "every cluster has its own Service of this name for its API server"
		}
		return ""
	},
	// An API server changes the cluster IP of a Service only together with its type, to or from ExternalName.
	replace: func(desired, live *corev1.Service) string {
		if desired.Spec.Type == corev1.ServiceTypeExternalName || live.Spec.Type == corev1.ServiceTypeExternalName {
			return ""
		}
		if headless(desired) != headless(live) {
			return "spec.clusterIP"
		}
		return ""
	},
}

func headless(in *corev1.Service) bool { return in.Spec.ClusterIP == corev1.ClusterIPNone }

// selectsPods tells whether the Service selects pods with these labels. A Service without a selector selects none: its endpoints are
// someone else's to write.
func selectsPods(in *corev1.Service, podLabels map[string]string) bool {
	if len(in.Spec.Selector) == 0 || in.Spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	return labels.SelectorFromSet(in.Spec.Selector).Matches(labels.Set(podLabels))
}
