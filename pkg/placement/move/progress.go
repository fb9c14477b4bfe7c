package move

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Progress says how far a workload is on its way from cluster to cluster, such as "3 to leave east, 1 of 4 available in west", or "" if it
// is not on its way: no cluster runs more than was decided for the time until others run what they should. Scaling is no move.
func Progress(decision placement.Decision, observed map[string]Observed) string {
	left, shrinks := false, false
	names := decision.Clusters()
	for cluster, o := range observed {
		share, decided := decision[cluster]
		switch {
		case o.Silent || o.Replicas <= share.Replicas:
		case decided:
			shrinks = true
		default:
			left, names = true, append(names, cluster)
		}
	}
	if decision.Total() == 0 || !left && !(shrinks && behind(decision, observed)) {
		return ""
	}
	slices.Sort(names)
	var parts []string
	for _, cluster := range names {
		o, share := observed[cluster], decision[cluster]
		if _, decided := decision[cluster]; decided {
			parts = append(parts, fmt.Sprintf("%d of %d available in %s", min(o.Available, share.Replicas), share.Replicas, cluster))
		}
		if more := o.Replicas - share.Replicas; more > 0 && !o.Silent {
			parts = append(parts, fmt.Sprintf("%d to leave %s", more, cluster))
		}
	}
	return strings.Join(parts, ", ")
}

// ByNodes is the decision about a workload that runs wherever nodes are, with as many replicas as those of each cluster take.
func ByNodes(decision placement.Decision, observed map[string]Observed) placement.Decision {
	out := make(placement.Decision, len(decision))
	for cluster := range decision {
		out[cluster] = placement.Share{Replicas: observed[cluster].Replicas}
	}
	return out
}

// behind reports whether any cluster does not serve all that was decided.
func behind(decision placement.Decision, observed map[string]Observed) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(decision)), func(cluster string) bool {
		return observed[cluster].serving() < decision[cluster].Replicas
	})
}
