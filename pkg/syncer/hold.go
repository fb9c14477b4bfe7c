package syncer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// step returns the share that this cluster is to have now of a workload, on the way to what was decided: more than that as long as what is
// to replace it does not serve, or less as long as there are already so many replicas beyond those wanted as may be. Held is false in the
// ordinary case: it is what was decided. Whatever changes in other clusters wakes us.
func (s *Syncer) step(w identity.Workload, live projection.Object) (share placement.Share, held bool) {
	demand := w.Kind.Demand(w.Object)
	if demand.Division == placement.Everywhere {
		return placement.Share{}, s.awaitsOthers(w, live)
	}
	// Only what keeps no identity may run more than once for the time of a move.
	if demand.Division != placement.Divisible || live != nil && !ours(live, w) {
		return placement.Share{}, false
	}
	decision := identity.DecisionOf(w)
	decided, told := decision[s.cluster].Replicas, int32(0)
	if live != nil {
		told = s.toldReplicas(w, w.Kind.Demand(live).Replicas)
	}
	if told == decided {
		return placement.Share{}, false
	}
	observed := s.Upstream.observed(w, s.Silent)
	if len(decision) == 0 && allTold(observed) <= int64(demand.Replicas) {
		return placement.Share{Replicas: told}, s.stays()
	}
	if told < decided && !exceeded(decision, observed) {
		return placement.Share{}, false // nothing moves: it is made, or scaled
	}
	var allowed *v1alpha1.Move
	if s.Moves != nil {
		allowed = s.Moves(w.Kind, w.Object)
	}
	bounds := move.BoundsOf(allowed, demand.Rollout, decision.Total())
	bounds.Asked = demand.Replicas
	share, has := move.Step(decision, observed, bounds)[s.cluster]
	if share.Replicas < told && s.Upstream.leadTo(w, observed, waiter{s, w.Key()}) {
		share, has = move.Step(decision, observed, bounds)[s.cluster]
	}
	return share, has && share.Replicas != decided
}

// awaitsOthers tells of a workload that runs wherever nodes are whether this cluster, which is to leave it, keeps it until others serve in
// its place. Those that nobody can ask, or that cannot hold it, are waited for only if there are no others.
func (s *Syncer) awaitsOthers(w identity.Workload, live projection.Object) bool {
	decision, key := identity.DecisionOf(w), w.Key()
	summarised, ok := summary.ForResource(w.Kind.Resource)
	if _, decided := decision[s.cluster]; !ok || decided || !ours(live, w) {
		return false
	}
	if len(decision) == 0 {
		return s.stays()
	}
	var elsewhere move.Observed
	known := false
	for cluster := range decision {
		if s.Silent != nil && s.Silent(cluster) {
			continue
		}
		other, running := s.Upstream.Syncer(cluster)
		if running && other.stateOf(key).problem != "" {
			continue
		}
		if !running || !other.HasSynced() {
			return true
		}
		has := other.below.Get(key)
		if !ours(has, w) || !summarised.Observed(has) {
			return true
		}
		counts := summarised.Counts(has)
		known = true
		elsewhere.Replicas += counts.Replicas
		elsewhere.Available += counts.Available - min(counts.Available, other.unreached(w, counts.Available, waiter{s, key}))
	}
	return !known || !move.Relieved(summarised.Counts(live).Available, elsewhere, w.Kind.Demand(w.Object).Rollout)
}

// stays reports whether this cluster keeps what has no place any more, as when the cluster that it was on its way to is removed: nothing leaves
// for nowhere, unless the cluster itself goes.
func (s *Syncer) stays() bool {
	leaving, _ := s.Leaving(s.cluster)
	return !leaving
}

// allTold is how many replicas all clusters were told to run.
func allTold(observed map[string]move.Observed) (n int64) {
	for _, o := range observed {
		n += int64(o.Replicas)
	}
	return n
}

// exceeded reports whether any cluster runs more than was decided.
func exceeded(decision placement.Decision, observed map[string]move.Observed) bool {
	for cluster, o := range observed {
		if !o.Silent && o.Replicas > decision[cluster].Replicas {
			return true
		}
	}
	return false
}

// observed returns what every cluster runs of a workload: by its watches or, if these have not shown yet all that is there, by what was last
// written about it.
func (u *Upstream) observed(w identity.Workload, silent func(cluster string) bool) map[string]move.Observed {
	out := map[string]move.Observed{}
	summarised, ok := summary.ForResource(w.Kind.Resource)
	if !ok {
		return out
	}
	if silent == nil {
		silent = func(string) bool { return false }
	}
	key := w.Key()
	name := cache.MetaObjectToName(w).String()
	for _, s := range u.Syncers() {
		live := caches.Named[projection.Object](s.below.Stores[key.Resource], name)
		if !ours(live, w) || s.givenUp() || !s.counts(w.Kind, w.Object, live) { // what most of many clusters do not have is found out first
			continue
		}
		demand, counts := w.Kind.Demand(live), summarised.Counts(live)
		out[s.cluster] = move.Observed{
			Replicas: s.toldReplicas(w, demand.Replicas), Available: counts.Available, Silent: silent(s.cluster),
			Replacing: demand.Rollout != move.Rollout{} && counts.Updated < counts.Replicas,
		}
	}
	breakdown, err := summary.ParseBreakdown(w.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		return out
	}
	for cluster, status := range breakdown {
		if !u.hasShown(cluster, key) && !silent(cluster) {
			out[cluster] = move.Observed{Replicas: status.Replicas}
		}
	}
	return out
}

// hasShown reports whether the watches of a cluster have shown what it has of an object, if anything.
func (u *Upstream) hasShown(cluster string, key identity.Key) bool {
	s, ok := u.Syncer(cluster)
	return ok && (s.HasSynced() || s.holds(key))
}
