package connection

import "context"

// Runner works with one cluster as long as the connection lasts: it is how the syncer is started.
type Runner interface {
	// Run blocks until ctx ends or it cannot go on. clusters.Manager calls it once per connection at a time, starts it again with a
	// growing delay after an error, and waits for it before it makes another connection to the same cluster.
	//
	// It keeps one watch of all pods of the cluster and feeds c.Usage from it: PodChanged, PodGone, and Synced when the first
	// list has been delivered. The Manager has called Begin.
	Run(ctx context.Context, c *Connection) error
}
