// Package manifests has the manifests that the end-to-end tests of several topics apply. Functions return YAML, and take the edits that a test
// makes to it.
package manifests
