// Package placement decides on which clusters a workload runs and how many replicas each of them gets.
//
// Everything here is a function of values: no client, no lister, no clock. Admission, the controller and "manifold explain" call
// the same Place, so what a dry run shows is what happens. Equal arguments give equal results; the order in which clusters,
// policies or names are handed over does not matter, and no argument is changed.
//
// Place works like a scheduling cycle of kube-scheduler: a table of filters finds the clusters that may take replicas and says
// why the others may not, a table of scores ranks what is left, and a strategy hands out the replicas. Unlike a scheduling cycle
// it starts from the last decision: what runs stays where it runs unless the workload's pin or policy no longer selects that
// cluster, and even then it leaves only for a cluster that can take it.
package placement
