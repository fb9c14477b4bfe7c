// Package places says which clusters the targets of an application stand for.
package places

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Resolve returns the clusters that targets go to, in the order of the targets, and by name within one. A cluster that a target names is that
// target's; of the others, each belongs to the first target whose selector matches.
func Resolve(targets []delivery.Target, clusters map[string]delivery.Cluster) ([]delivery.Place, error) {
	owners := map[string]string{}
	for _, target := range targets {
		if target.Selector != nil {
			continue
		}
		if _, there := clusters[target.Cluster]; !there {
			return nil, fmt.Errorf("target %q: there is no cluster %q", target.Name, target.Cluster)
		}
		if owner, taken := owners[target.Cluster]; taken {
			return nil, fmt.Errorf("target %q: cluster %q is that of target %q: a cluster can have one of them", target.Name, target.Cluster, owner)
		}
		owners[target.Cluster] = target.Name
	}
	var out []delivery.Place
	for _, target := range targets {
		if target.Selector == nil {
			out = append(out, delivery.Place{Target: target.Name, Cluster: target.Cluster})
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(target.Selector)
		if err != nil {
			return nil, fmt.Errorf("target %q: clusterSelector: %w", target.Name, err)
		}
		for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
			if _, taken := owners[cluster]; !taken && selector.Matches(labels.Set(clusters[cluster].Labels)) {
				owners[cluster] = target.Name
				out = append(out, delivery.Place{Target: target.Name, Cluster: cluster})
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("none of the targets matches a cluster")
	}
	return out, nil
}
