// Package v1alpha1 holds the kinds of delivery: when a new version of an application reaches which cluster, at what share of the traffic,
// and who agreed.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.manifold-dev.manifold.apis.delivery.v1alpha1
// +groupName=delivery.manifold.dev
package v1alpha1
