// Package syncer keeps one physical cluster like the logical cluster wants it, and reports what runs there. It is to the logical
// cluster what a kubelet is to an API server.
//
// Upstream is the logical cluster as all syncers of the process see it: one set of watches, with indexes that answer who needs what.
// A Syncer adds the watches of its own cluster and its loops, each level-triggered, so that any of them may start or die at any
// moment:
//
//	down    object of the logical cluster ──► projection.Plan ──► create, apply, replace or delete below
//	pods    pod below ──► its mirror above
//	events  event below ──► the same event on the object above
//
// The caches are packages logical and physical. Package mirrors has the last two loops, and that of volume claims; package guard checks what they
// write.
//
// A step looks, has package planning say what is to be done, and carries that out. What came of it is kept by package states, and told by
// packages reporting and holding; package summary/controller makes one status of the reports of all clusters.
package syncer
