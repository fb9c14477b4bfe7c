package stages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/variants"
	"github.com/manifold-dev/manifold/pkg/delivery/waves"
)

// byPods is the next set on the way to one whose shares are made by numbers of pods. What grows is ready before requests are shared out otherwise, and
// what shrinks does so after that, so that nobody gets more requests than there are pods for.
func (r *Run) byPods(goal delivery.Set, t *delivery.TargetStatus) delivery.Set {
	seen, present := r.Seen.Clusters[t.Cluster], r.present(t)
	goal = sized(goal, t.Cluster, seen)
	large := goal
	for _, name := range goal.Names() {
		part, has := goal.Part(name, t.Cluster)
		if !has {
			continue
		}
		before, _ := present.Part(name, t.Cluster)
		part.Replicas = larger(part.Replicas, before.Replicas)
		large = variants.Put(large, name, goal[name], t.Cluster, part)
	}
	switch {
	case !r.grown(t, seen, large).Done:
		return variants.Route(large, t.Cluster, present.Shares(t.Cluster))
	case !r.look(t, seen).Routes().Done || present.Differs(large, t.Cluster) && present.Differs(goal, t.Cluster):
		return large
	}
	return goal
}

// sized is a set in which the copies of a cluster have as many pods as their shares take. Those that share no requests with others keep what they have.
func sized(set delivery.Set, cluster string, seen delivery.Cluster) delivery.Set {
	primary := map[string]int32{}
	for _, workload := range seen.Behind {
		primary[workload] = seen.Wanted[workload]
	}
	shares := set.Shares(cluster)
	for name, replicas := range routing.Pods(shares, primary) {
		part, _ := set.Part(name, cluster)
		if shares[name] == routing.Whole { // nobody's share depends on how many it has, if they are enough
			replicas = larger(replicas, part.Replicas)
		}
		part.Replicas = with(part.Replicas, replicas)
		set = variants.Put(set, name, set[name], cluster, part)
	}
	return set
}

// with are numbers with others in their place.
func with(numbers, others map[string]int32) map[string]int32 {
	out := map[string]int32{}
	for _, of := range []map[string]int32{numbers, others} {
		for name, n := range of {
			out[name] = n
		}
	}
	return out
}

// larger are the larger of two numbers each, of those that the first one has.
func larger(numbers, others map[string]int32) map[string]int32 {
	var out map[string]int32
	for name, n := range numbers {
		if out == nil {
			out = map[string]int32{}
		}
		out[name] = max(n, others[name])
	}
	return out
}

// grown proves that the copies that are to share requests have as many pods as a set says, and that these are ready.
func (r *Run) grown(t *delivery.TargetStatus, seen delivery.Cluster, set delivery.Set) waves.Verdict {
	look := r.look(t, seen)
	for _, name := range set.Names() {
		part, has := set.Part(name, t.Cluster)
		if !has || name == delivery.Primary || part.Traffic == 0 {
			continue
		}
		if present, _ := look.Set.Part(name, t.Cluster); present.Fingerprint() != part.Fingerprint() {
			return waves.Verdict{Message: fmt.Sprintf("the %s grows in cluster %q", name, t.Cluster)}
		}
		if verdict := look.Runs(name, r.Release.MinReady, t.ReadySeen); !verdict.Done {
			return verdict
		}
	}
	return waves.Verdict{Done: true, Ready: true}
}

// counted proves that requests are shared out by numbers of pods, and says how many there are.
func (r *Run) counted(t *delivery.TargetStatus, seen delivery.Cluster) waves.Verdict {
	present := r.present(t)
	if verdict := r.grown(t, seen, variants.Route(present, t.Cluster, t.Shares)); !verdict.Done {
		return verdict
	}
	routed := r.look(t, seen).Routes()
	routed.Ready = true // the pods are
	if routed.Done {
		routed.Message = ratio(present.Shares(t.Cluster), seen)
	}
	return routed
}

// ratio says what part of all pods behind the Service is whose, "" if one variant has all of them.
func ratio(shares map[string]int32, seen delivery.Cluster) string {
	all, parts := int32(0), []string(nil)
	for name, share := range shares {
		if share > 0 {
			all += seen.Variants[name].Endpoints
		}
	}
	for name, share := range shares {
		if n := seen.Variants[name].Endpoints; name != delivery.Primary && share > 0 && share < routing.Whole && all > 0 {
			parts = append(parts, fmt.Sprintf("%s %d of %d pods: %d%%", name, n, all, n*routing.Whole/all))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Follow has copies that share requests by numbers of pods go along with those of the primary, which an autoscaler or somebody may change at any time.
// What a stage is about it leaves to that.
func (r *Run) Follow() {
	if !r.Release.ByPods {
		return
	}
	busy := map[string]bool{}
	for _, of := range r.Status.Stages {
		for _, t := range of.Targets {
			busy[t.Cluster] = busy[t.Cluster] || of.Phase == delivery.Running && t.Phase == delivery.Running
		}
	}
	for _, cluster := range r.Status.Set.Clusters() {
		if seen, there := r.Seen.Clusters[cluster]; there && !busy[cluster] {
			t := &delivery.TargetStatus{Place: delivery.Place{Cluster: cluster}}
			r.edit(t, sized(r.present(t), cluster, seen))
		}
	}
}
