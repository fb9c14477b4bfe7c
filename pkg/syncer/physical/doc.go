// Package physical holds what one cluster has, as its syncer sees it, and finds in that who owns what.
//
// It knows nothing of the logical cluster. What it finds may be a lie of the cluster's admin: what counts is asked of package logical.
package physical
