package projection

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Placed is a workload that an object goes along with, and where it runs. One that has finished is none.
type Placed struct {
	// Demand is what it asks for as a whole.
	Demand Demand
	// Decision says which clusters run it.
	Decision placement.Decision
}

// Placed returns what runs by a decision: of replicas that have several pods each, the pods of every template.
func (d Demand) Placed(decision placement.Decision) []Placed {
	if len(d.Beside) == 0 && d.Each <= 1 {
		return []Placed{{Demand: d, Decision: decision}}
	}
	var out []Placed
	for pods := range d.Pods() {
		of := Placed{Demand: d, Decision: make(placement.Decision, len(decision))}
		of.Demand.Template, of.Demand.Each, of.Demand.Beside = pods.Template, 1, nil
		of.Demand.Replicas *= pods.Each
		for cluster, share := range decision {
			share.Replicas *= pods.Each
			of.Decision[cluster] = share
		}
		out = append(out, of)
	}
	return out
}

// copied reports whether every one of several clusters runs the whole workload.
func (p Placed) copied() bool {
	for _, share := range p.Decision {
		if share.Replicas != p.Demand.Replicas {
			return false
		}
	}
	return len(p.Decision) > 1
}

// spread is how the replicas of some workloads are spread over clusters.
type spread map[string]int64

// spreadOf returns what runs where. Clusters that are to run nothing of it are named as well.
func spreadOf(workloads []Placed) spread {
	out := spread{}
	for _, w := range workloads {
		for cluster, share := range w.Decision {
			out[cluster] += int64(share.Replicas)
		}
	}
	return out
}

// copied reports whether every cluster runs the whole of each workload, so that each has its own of what is there for the whole.
func copied(workloads []Placed) bool {
	for _, w := range workloads {
		if !w.copied() {
			return false
		}
	}
	return true
}

func (s spread) total() int64 { return sum(s) }

// part is what a cluster gets of a number of replicas, which may be a percentage of all of them.
func (s spread) part(of intstr.IntOrString, cluster string) int32 {
	// As Kubernetes does, parts of a replica count as a whole one. What does not parse, which no API server accepts, counts as none.
	amount, err := intstr.GetScaledValueFromIntOrPercent(&of, int(s.total()), true)
	if err != nil {
		return 0
	}
	return int32(apportion(int64(amount), s)[cluster])
}
