// Package delivery is about which version of an application runs in which cluster, and at what share of the traffic: it holds the values that
// everybody talks in who plans, decides or carries out a release.
//
// The desired state of an application is its variant set. A release edits the set step by step; the kernel carries out what the set says.
// Everything here and in the rooms below is a function of values: no client, no lister, no clock. Equal arguments give equal results, and no
// argument is changed. The arrows between the rooms run one way, from the first to the last:
//
//	engine            the next status of a release, of its last one and of what is observed
//	stages            what each kind of stage does, and when it is done
//	planner           how a revision is released, and which release runs
//	read              what the objects of the API ask for, as values
//	waves             which targets of a stage may begin, and when a target is done
//	observe           what is seen of clusters, by objects of the logical cluster
//	wanted            the objects of the logical cluster that a variant set stands for
//	drift             what of these objects is not what was released
//	traffic, copies   the objects that a variant set stands for
//	routing           what shares of the traffic may be set now
//	analysis          whether what was measured is as expected
//	variants          the edits of a variant set
//	delivery          the values
package delivery
