package projection

//lint:file-ignore SA1019 Users write Endpoints all the same.

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelEndpointsBy names the controller that keeps an object of kind Endpoints.
const labelEndpointsBy = "endpoints.kubernetes.io/managed-by"

// The controllers of Kubernetes that make endpoints of pods, and slices of what users write, in the logical cluster as in every other.
const (
	endpointController            = "endpoint-controller"
	endpointSliceController       = "endpointslice-controller.k8s.io"
	endpointSliceMirrorController = "endpointslicemirroring-controller.k8s.io"
)

// endpoints goes along with its Service, if somebody wrote it.
var endpoints = row[corev1.Endpoints, *corev1.Endpoints]{
	resource:   corev1.SchemeGroupVersion.WithResource("endpoints"),
	kind:       "Endpoints",
	namespaced: true,
	right:      "endpoints that are written by hand",
	fill: func(in, out *corev1.Endpoints, _ Part) {
		for i := range in.Subsets {
			out.Subsets = append(out.Subsets, *in.Subsets[i].DeepCopy())
		}
	},
	mirror:  func(in *corev1.Endpoints) bool { return in.Labels[labelEndpointsBy] == endpointController },
	follows: func(in *corev1.Endpoints, r *references) { r.add(service.resource, in.Name, true) },
	refuse:  func(in *corev1.Endpoints) string { return ofTheAPIServer(in.Namespace, in.Name) },
	// Controllers copy labels of the Service, the mark of ownership among them.
	notMadeThere: labelEndpointsBy + "!=" + endpointController,
}

// endpointSlice goes along with the Service that it names, if somebody wrote it, or a controller other than those of Kubernetes. Of one that is
// made of pods, clusters of a network hold what is in the others.
var endpointSlice = row[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
	resource:   discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
	kind:       "EndpointSlice",
	namespaced: true,
	right:      "slices of endpoints that are written by hand, and of those in other clusters of a network",
	fill: func(in, out *discoveryv1.EndpointSlice, part Part) {
		if MadeOfPods(in) {
			fillElsewhere(in, out, part)
			return
		}
		copied := in.DeepCopy()
		out.AddressType, out.Endpoints, out.Ports = copied.AddressType, copied.Endpoints, copied.Ports
	},
	mirror: func(in *discoveryv1.EndpointSlice) bool {
		by := in.Labels[discoveryv1.LabelManagedBy]
		return by == endpointSliceController || by == endpointSliceMirrorController
	},
	follows: func(in *discoveryv1.EndpointSlice, r *references) {
		r.add(service.resource, in.Labels[discoveryv1.LabelServiceName], true)
	},
	refuse: func(in *discoveryv1.EndpointSlice) string {
		return ofTheAPIServer(in.Namespace, in.Labels[discoveryv1.LabelServiceName])
	},
	replace: func(desired, live *discoveryv1.EndpointSlice) string {
		if desired.AddressType != live.AddressType {
			return "addressType"
		}
		return ""
	},
	notMadeThere: discoveryv1.LabelManagedBy + " notin (" + endpointSliceController + "," + endpointSliceMirrorController + ")",
}

// ofTheAPIServer refuses what belongs to the Service of a cluster's own API server.
func ofTheAPIServer(namespace, service string) string {
	if namespace == metav1.NamespaceDefault && service == "kubernetes" {
		return "every cluster has its own Service of this name for its API server"
	}
	return ""
}
