// Package identity says which object is meant, and what an object of the logical cluster records of the clusters that it is in.
//
// Everything here is a function of values. Nothing here believes what a user can write: what a pod names as its node says nothing about
// where it runs.
package identity
