package variants

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/placement/portion"
)

// Size says how large a copy is.
type Size struct {
	// Replicas is a number of pods, or a percentage of those that the primary has, rounded up. A copy has at least one pod, if the primary has.
	Replicas intstr.IntOrString `json:"replicas"`
	// PerCluster says that each cluster has that many. Otherwise all of them together have.
	PerCluster bool `json:"perCluster,omitempty"`
}

// Divide returns how many pods of each workload a copy has in each cluster, of how many the primary has there: both by the name of the cluster
// and of the workload. What all clusters are to have together is divided among them by the largest remainder. A cluster that gets nothing of any
// workload is left out.
func (s Size) Divide(primary map[string]map[string]int32) (map[string]map[string]int32, error) {
	byWorkload := map[string]map[string]int64{}
	for cluster, workloads := range primary {
		for workload, replicas := range workloads {
			if byWorkload[workload] == nil {
				byWorkload[workload] = map[string]int64{}
			}
			byWorkload[workload][cluster] = int64(max(0, replicas))
		}
	}
	out := map[string]map[string]int32{}
	for workload, clusters := range byWorkload {
		shares, err := s.divide(clusters)
		if err != nil {
			return nil, err
		}
		for cluster, replicas := range shares {
			if out[cluster] == nil {
				out[cluster] = map[string]int32{}
			}
			out[cluster][workload] = replicas
		}
	}
	return out, nil
}

// divide is Divide of one workload.
func (s Size) divide(primary map[string]int64) (map[string]int32, error) {
	out := map[string]int32{}
	if s.PerCluster {
		for cluster, replicas := range primary {
			size, err := s.of(replicas)
			if err != nil {
				return nil, err
			}
			if size > 0 {
				out[cluster] = size
			}
		}
		return out, nil
	}
	total := int64(0)
	for _, replicas := range primary {
		total += replicas
	}
	size, err := s.of(total)
	if err != nil {
		return nil, err
	}
	shares, _ := portion.Divide(size, primary, nil, nil)
	for cluster, share := range shares {
		out[cluster] = share.Replicas
	}
	return out, nil
}

// of returns the size of a copy of so many pods.
func (s Size) of(pods int64) (int32, error) {
	if pods == 0 {
		return 0, nil
	}
	size, err := intstr.GetScaledValueFromIntOrPercent(&s.Replicas, int(pods), true)
	if err != nil {
		return 0, fmt.Errorf("replicas %q: it must be a number or a percentage, such as 10%%: %w", s.Replicas.String(), err)
	}
	if size < 0 || size > maxReplicas {
		return 0, fmt.Errorf("replicas %q: it must be from 0 to %d", s.Replicas.String(), maxReplicas)
	}
	return max(1, int32(size)), nil
}

// maxReplicas bounds what a slip of the pen can ask for.
const maxReplicas = 100_000
