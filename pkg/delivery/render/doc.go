// Package render makes objects of the files of an application: of manifests as they are, by kustomize, or of a Helm chart.
//
// Gather reads what a rendering needs out of a tree, below bounds, and Render makes objects of that, in the process and without a network:
// kustomize and Helm are used as libraries, their plugins, remote bases, dependencies that are elsewhere and lookups in a cluster are not.
// Templates may still take any time and memory, so files of strangers are rendered in a process of their own: see package confined.
package render
