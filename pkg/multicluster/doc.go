// Package multicluster says what the Multi-Cluster Services API (KEP-1645) means in a logical cluster, where a Service is one Service already: whether
// one can be exported, what stands for it as imported, and which slices tell of its endpoints by cluster. docs/designs/services.md has the reasons.
//
// Everything here is a function of values; package controller carries it out.
package multicluster
