// Package clusters keeps the physical clusters of a logical cluster: a Registry of live connections, their health and capacity, the
// status of every Cluster object, and a Node of the same name in the logical cluster. How one cluster is reached is in package connection, and
// what is shown of it in package status.
//
// The Manager runs one session per Cluster object. A session probes the cluster, and only once the cluster that joined has answered
// does it publish its connection, watch the nodes and start the Runner, which is the syncer. What a session learns stays in memory;
// one status loop compares it with the object and writes what has changed, a second loop keeps the Nodes like the Clusters.
//
//	Cluster, Secret ──► connect loop ──► session: probe, nodes, discovery, Runner
//	                                        │ what it learned
//	Cluster.status, Lease, Node  ◄── status loop, node loop
package clusters
