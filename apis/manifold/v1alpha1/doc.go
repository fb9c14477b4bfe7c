// Package v1alpha1 holds Manifold's own kinds and every name that users and tools rely on.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.manifold-dev.manifold.apis.manifold.v1alpha1
// +groupName=manifold.dev
package v1alpha1
