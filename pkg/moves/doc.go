// Package moves says what each cluster is to hold now of a workload, while replicas go from one cluster to another.
//
// What all clusters have of the workload is gathered in one place into one value, its Fleet. Next is a pure function of that value: it follows
// the decision as far as the other clusters let it, and gives a reason where it has to wait. Fleets is the one owner of the reservations:
// what clusters were told to run, or to give up, by writes that no watch has shown yet. Syncers tell what their own cluster has, ask for its step,
// and read nothing of each other.
package moves
