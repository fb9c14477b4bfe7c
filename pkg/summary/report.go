package summary

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Report is what is known about one cluster's projection of an object.
type Report struct {
	// Generation is the generation of the object upstream that the status answers for: the cluster carries out the projection of
	// that generation, with the share that is decided now, and its controllers have seen it. Zero means none yet.
	Generation int64
	// Deployment is the status of a Deployment in the cluster, nil if there is none yet or the object is of another kind.
	Deployment *appsv1.DeploymentStatus
	// Service is the status of a Service in the cluster, nil if there is none yet or the object is of another kind.
	Service *corev1.ServiceStatus
	// Stale tells that the cluster is silent, so that everything else is the last that was heard of it.
	Stale bool
	// Problem says why the cluster cannot hold the projection, such as a name that is taken there. It is for the user.
	Problem string
}

// current tells whether the report, however old, is about the given generation.
func (r Report) current(generation int64) bool { return r.Problem == "" && r.Generation >= generation }

// answers tells whether the cluster confirms the given generation now.
func (r Report) answers(generation int64) bool { return r.current(generation) && !r.Stale }

// clustersOf returns the names of reporting clusters in order, which is what keeps sums and messages the same between passes.
func clustersOf(reports map[string]Report) []string { return slices.Sorted(maps.Keys(reports)) }
