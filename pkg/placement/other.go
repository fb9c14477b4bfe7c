package placement

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Other is another workload, as far as affinity is about it.
type Other struct {
	Kind, Group     string
	Namespace, Name string
	// Labels are the workload's own, NamespaceLabels its namespace's.
	Labels          map[string]string
	NamespaceLabels map[string]string
	// Clusters are the names of those where it is.
	Clusters []string
	// Pinned is true if the user chose where, so that its policy does not keep it apart from anybody.
	Pinned bool
	// Apart is the antiAffinity of its policy, as far as that may be about the workload that is placed; see rules.KeepApart.
	Apart []v1alpha1.WorkloadAffinity
}
