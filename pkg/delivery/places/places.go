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
		return nil, ErrNone
	}
	return out, nil
}

// ErrNone says that there is no place to go to.
var ErrNone = errors.New("none of the targets matches a cluster")

// Moves are the clusters in which an application does not run as its targets say now.
type Moves struct {
	// Joins are those in which it does not run, or as another target.
	Joins []delivery.Place
	// Leaves are those in which it runs and that are no target any more.
	Leaves []delivery.Place
}

// Next returns the clusters that join and leave the targets of an application which runs in some, each as a target. An error says why a release could not
// begin now.
func Next(targets []delivery.Target, runs map[string]string, clusters map[string]delivery.Cluster) (out Moves, err error) {
	found, err := Resolve(targets, clusters)
	if err != nil && !errors.Is(err, ErrNone) {
		return Moves{}, err
	}
	stays := map[string]bool{}
	for _, place := range found {
		stays[place.Cluster] = true
		if of, is := runs[place.Cluster]; !is || of != place.Target {
			out.Joins = append(out.Joins, place)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(runs)) {
		if !stays[cluster] {
			out.Leaves = append(out.Leaves, delivery.Place{Target: runs[cluster], Cluster: cluster})
		}
	}
	return out, err
}
