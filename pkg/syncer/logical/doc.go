// Package logical holds the logical cluster as the caches of this process show it, and answers what follows from that alone: what is whose,
// what a cluster shows, and what a pod is made by.
//
// What it finds was written by users, or by Manifold itself. It is the record that what clusters say is measured by; no cluster is asked.
package logical
