package releases

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// clusters are those that releases come to.
type clusters struct {
	listers.ClusterLister
	// grace is for how long one has been silent when it is shown as such.
	grace time.Duration
}

// silentSince is since when a cluster has not answered, zero if it does.
func (c clusters) silentSince(cluster *manifold.Cluster) time.Time {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, manifold.ClusterReady)
	if ready == nil {
		return cluster.CreationTimestamp.Time // it has never answered
	}
	if answering := meta.FindStatusCondition(cluster.Status.Conditions, manifold.ClusterAnswering); answering != nil && answering.Status == metav1.ConditionFalse {
		return answering.LastTransitionTime.Time
	}
	if !health.Silent(ready) {
		return time.Time{}
	}
	return ready.LastTransitionTime.Add(-c.grace)
}

// ready are the clusters that answer. An application without workloads is released to them: what it has goes where others need it.
func (c clusters) ready() ([]string, error) {
	all, err := c.List(everything)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, cluster := range all {
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, manifold.ClusterReady) {
			out = append(out, cluster.Name)
		}
	}
	if len(out) == 0 {
		return nil, waitError{"no cluster is ready"}
	}
	return out, nil
}

// leaves are the clusters that a release leaves by which targets follow their clusters: those that run the application as one of these targets, and are none of
// any target any more.
func (c clusters) leaves(app *v1alpha1.Application, release *v1alpha1.Release, set delivery.Set) ([]string, error) {
	if !release.Follows() || unplaced(app) {
		return nil, nil
	}
	all, err := c.List(everything)
	if err != nil {
		return nil, err
	}
	there, runs := map[string]delivery.Cluster{}, map[string]string{}
	for _, cluster := range all {
		there[cluster.Name] = delivery.Cluster{Labels: cluster.Labels}
	}
	for _, name := range set.Names() {
		for cluster, part := range set[name].Clusters {
			if runs[cluster] == "" || name == delivery.Primary {
				runs[cluster] = part.Target
			}
		}
	}
	moves, err := places.Next(read.Targets(app.Spec.Targets), runs, there)
	if err != nil && !errors.Is(err, places.ErrNone) {
		return nil, nil // nobody leaves while it cannot be told who does
	}
	var out []string
	for _, place := range moves.Leaves {
		if slices.Contains(release.Spec.Targets, place.Target) {
			out = append(out, place.Cluster)
		}
	}
	return out, nil
}

// without are those of some places that are known not to serve a kind.
func (c clusters) without(kind schema.GroupKind, of []delivery.Place) []string {
	var out []string
	for _, place := range of {
		cluster, err := c.Get(place.Cluster)
		if err != nil || len(cluster.Status.Kinds) == 0 || serves(cluster.Status.Kinds, kind) {
			continue // what is not known is told once it is tried
		}
		out = append(out, place.Cluster)
	}
	return out
}

// serves reports whether a kind is among those that a cluster serves, in any version.
func serves(kinds []string, kind schema.GroupKind) bool {
	return slices.ContainsFunc(kinds, func(served string) bool {
		name, rest, _ := strings.Cut(served, ".")
		_, group, _ := strings.Cut(rest, ".")
		return name == kind.Kind && group == kind.Group
	})
}
