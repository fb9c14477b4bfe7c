// Package guard says what the identity of a cluster may write to the logical cluster.
//
// It asks the record of the logical cluster alone. Syncers ask it before they write, and the API server when it is written.
package guard
