// Package described follows the kinds of custom resources that policies describe as workloads: it reads their objects, of which others read the
// metadata alone, and says what is wrong with a description.
package described
