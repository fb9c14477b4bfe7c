// Package ours bounds the requests that users make to a cluster by way of the logical cluster to what is theirs. They are made with the
// credential of Manifold, to which much more is open: what leads to another object, or what would have the cluster take them for somebody
// else's, is refused or left out before they leave.
package ours
