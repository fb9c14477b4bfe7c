// Package membership joins clusters to the logical cluster of an end-to-end test and removes them, and finds what is in them: what Manifold
// owns there, and what is somebody else's.
package membership
