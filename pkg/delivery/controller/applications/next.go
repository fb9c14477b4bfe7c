package applications

import (
	"fmt"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// mostShown is how many clusters a message names.
const mostShown = 3

// clustersNow are the clusters that there are, with their labels.
func (v *view) clustersNow() map[string]delivery.Cluster {
	out := map[string]delivery.Cluster{}
	for _, cluster := range caches.All[*manifold.Cluster](v.clusters) {
		out[cluster.Name] = delivery.Cluster{Labels: cluster.Labels}
	}
	return out
}

// withNext says which clusters join or leave an application with its next release: targets are settled when a release begins, and clusters come, go and get
// other labels after that. It is "" if none does.
func withNext(targets []v1alpha1.Target, clusters map[string]delivery.Cluster, variants []v1alpha1.Variant) string {
	if len(targets) == 0 {
		return "" // placement decides, at any time
	}
	moves, err := places.Next(read.Targets(targets), read.Runs(variants), clusters)
	if err != nil {
		return "the next release cannot begin: " + delivery.Said(err.Error())
	}
	var joins, leaves []string
	for _, place := range moves.Joins {
		joins = append(joins, fmt.Sprintf("%q of target %s", place.Cluster, place.Target))
	}
	for _, place := range moves.Leaves {
		leaves = append(leaves, fmt.Sprintf("%q", place.Cluster))
	}
	var out []string
	if len(joins) > 0 {
		out = append(out, "joining with the next release: cluster "+some(joins))
	}
	if len(leaves) > 0 {
		out = append(out, "leaving with the next release, as it is no target any more: cluster "+some(leaves))
	}
	return strings.Join(out, "; ")
}

// some are names, or as many of them as a message has room for.
func some(names []string) string {
	if len(names) <= mostShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostShown], ", "), len(names)-mostShown)
}
