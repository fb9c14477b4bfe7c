// Package engine gathers what a decision depends on from the logical cluster's caches and hands it to decide.Place. Admission and
// the placement controller both ask it, so that they cannot differ.
package engine
