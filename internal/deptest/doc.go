// Package deptest reads which package of the module imports which, so that tests can hold the arrows between them in one direction.
//
// It parses import declarations and builds nothing, so it is fast enough to run with every other test.
package deptest
