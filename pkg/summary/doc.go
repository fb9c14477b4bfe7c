// Package summary computes the one status of an object of the logical cluster from what every cluster reports about its projection.
//
// All functions are pure: they read their arguments alone, leave them as they are, and take the time from the caller. An unchanged
// input gives a status that compares equal to the one that the object has, so the caller can skip the write.
package summary
