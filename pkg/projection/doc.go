// Package projection computes what one cluster should hold for an object of the logical cluster, and what is to be done about
// the object that the cluster holds already.
//
// A projection is a function of (object, share, target); clients, listers and clocks stay with the caller. Equal arguments give
// equal objects, so the syncer can skip writes by comparing. Fields left unset belong to the cluster: its defaults, its
// allocations and what its webhooks add there are left alone.
//
// Every kind is one file and one row of the table in kinds.go.
package projection
