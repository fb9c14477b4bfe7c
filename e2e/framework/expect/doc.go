// Package expect is what the end-to-end tests of several topics expect of workloads and of what commands answer. Functions that take a scenario
// or a side wait until it is so, and a test fails in which it does not come to be. Those that return a function are claims for
// framework.Await and its like.
package expect
