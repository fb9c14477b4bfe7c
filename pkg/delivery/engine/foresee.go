package engine

import (
	"maps"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// Foreseen is what an application is to run once a stage is done in its clusters.
type Foreseen struct {
	Stage    delivery.Stage
	Clusters []string
	Set      delivery.Set
}

// Foresee returns what an application is to run after each stage of a release that has just begun, if each does what it is for in all of its targets. It ends
// before the first stage of which that cannot be told yet, such as one that copies what is not there.
func Foresee(release delivery.Release, begun delivery.Status, seen delivery.Observed) []Foreseen {
	n := &next{release: release, status: begun.Clone(), seen: seen}
	n.status.Set, n.status.Edits = release.Current.Clone(), nil
	for i, of := range n.status.Stages {
		n.status.Stages[i] = delivery.StageStatus{ID: of.ID, Name: of.Name, Phase: delivery.NotStarted}
	}
	n.seen.Clusters = maps.Clone(seen.Clusters)
	for name, cluster := range n.seen.Clusters { // it is about what runs now
		cluster.Unroutable = ""
		n.seen.Clusters[name] = cluster
	}
	var out []Foreseen
	for i := range n.status.Stages {
		pass := n.pass(i)
		if n.skipped(pass) != "" {
			continue
		}
		if stages.Foresee(pass) != nil {
			break
		}
		foreseen := Foreseen{Stage: pass.Stage, Set: n.status.Set.Clone()}
		for _, t := range pass.Of.Targets {
			foreseen.Clusters = append(foreseen.Clusters, t.Cluster)
		}
		out = append(out, foreseen)
	}
	return out
}
