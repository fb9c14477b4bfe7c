// Package server assembles the logical cluster: the API server chain of k8s.io/kubernetes with Manifold's own group and its
// changes to storage, an embedded etcd, the keys and certificates, and the stock controllers that complete a control plane.
//
// It and its subpackages are the only importers of Kubernetes' unstable internals, so that a change of Kubernetes' version is felt
// here alone.
package server
