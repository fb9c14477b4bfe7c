package moves

import (
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Cluster tells what one cluster has. Its syncer implements it.
type Cluster interface {
	// Cluster is its name.
	Cluster() string
	// HasSynced reports whether everything that the cluster holds has been seen.
	HasSynced() bool
	// Holding returns what the cluster has of a workload.
	Holding(w identity.Workload, in *Record) Holding
	// Emptying reports whether the cluster, which is to have no ordinals of a workload any more, has some.
	Emptying(w identity.Workload) bool
	// Unrouted counts the replicas that serve there, so many as it says, and that some Service which selects them does not lead to yet. The
	// syncer of the cluster that asks looks at the workload again when there may be fewer; "" asks for nobody.
	Unrouted(w identity.Workload, available int32, asks string) int32
}

// Record is what the logical cluster has recorded of a workload, read once for all clusters.
type Record struct {
	// Demand is what the workload asks of the clusters, Decision what each of them is to have.
	Demand   projection.Demand
	Decision placement.Decision
	above    projection.Object
	reported summary.Breakdown
}

// RecordOf reads the record of a workload. What is damaged says nothing.
func RecordOf(w identity.Workload) *Record {
	return &Record{Demand: w.Kind.Demand(w.Object), Decision: identity.DecisionOf(w.Object), above: w.Object}
}

// Reported returns what clusters reported last. It is read when it is asked for: mostly nobody asks.
func (r *Record) Reported() summary.Breakdown {
	if r.reported == nil {
		r.reported, _ = summary.ParseBreakdown(r.above.GetAnnotations()[v1alpha1.AnnotationStatus])
	}
	return r.reported
}

// reports reports whether a cluster has reported anything that is on record.
func (r *Record) reports(cluster string) bool {
	_, reported := r.Reported()[cluster]
	return reported
}

// Holding is what a cluster has of a workload, by what its syncer sees and remembers.
type Holding struct {
	// Projection is what the cluster holds of this very workload, nil if it holds nothing that counts. Found says that it holds something of the
	// name.
	Projection projection.Object
	Found      bool
	// Failed says that the cluster cannot hold what it should.
	Failed bool
	// Told is how many of the replicas that the projection asks for the cluster was told to run, Ordinals which.
	Told     int32
	Ordinals placement.Range
	// Keeps are the ordinals that it keeps from other clusters.
	Keeps []placement.Range
	// Behind says that a controller there has not seen yet what another one made of the projection, so that what it reports may be of before.
	Behind bool
}

// Options say what is asked about clusters and workloads.
type Options struct {
	// Cluster returns one that is connected, Clusters all of them.
	Cluster  func(name string) (c Cluster, connected bool)
	Clusters func() []Cluster
	// Version returns a workload as a cluster is to hold it, which may be at a revision of its own. It may be nil, as all below.
	Version func(w identity.Workload, cluster string) projection.Object
	// Leaving reports whether a cluster is being removed, and in which manner: a value of AnnotationRemove.
	Leaving func(cluster string) (leaving bool, manner string)
	// Silent reports whether a cluster cannot be told anything at the moment.
	Silent func(cluster string) bool
	// Lost reports whether a workload has given up a silent cluster, so that it may run elsewhere what it ran there.
	Lost func(w placement.Workload, cluster string) bool
	// Address returns an address from outside that leads to a cluster and keeps the last replicas of a workload there, nil if there is none.
	Address func(w identity.Workload, cluster string) *Address
	// Moves returns what the policy of a workload says about moving it, nil if nothing.
	Moves func(kind projection.Kind, above projection.Object) *v1alpha1.Move
}

// Fleets gathers what clusters have of workloads, and keeps what is reserved for them.
type Fleets struct {
	Options
	reservations reservations
}

// New returns fleets of which nothing is reserved.
func New(o Options) *Fleets { return &Fleets{Options: o} }

// Next gathers the fleet of a workload, returns what a cluster is to hold of it now, and reserves what this gives the cluster, or takes from it.
// One cluster asks after the other, so that each of them counts on what the last one is told. Whatever changes in other clusters is to have
// the cluster ask again.
func (f *Fleets) Next(w identity.Workload, cluster string) Step {
	g := f.begin(w)
	g.reserved.mu.Lock()
	defer g.reserved.mu.Unlock()
	step := g.next(cluster, cluster)
	if change, changes := g.fleet.change(cluster, step); changes {
		g.reserved.add(w.Key(), cluster, change)
	}
	return step
}

// next gathers what the step of a cluster depends on, and returns that. The one that asks is woken when there may be news of what it waits for; it is
// the cluster, or "" for somebody who only looks. The caller holds the lock.
func (g *gathering) next(cluster, asks string) Step {
	if self, connected := g.Cluster(cluster); connected {
		g.add(self, cluster)
	}
	if g.fleet.settled(cluster) && !g.takesTurns(cluster) {
		return g.fleet.decided(cluster)
	}
	clusters := g.Clusters()
	for _, other := range clusters {
		if other.Cluster() != cluster {
			g.add(other, cluster)
		}
	}
	g.finish()
	g.order(cluster)
	if g.Moves != nil && g.fleet.bounded(cluster) {
		g.fleet.Move = g.Moves(g.w.Kind, g.w.Object)
	}
	step := Next(g.fleet, cluster)
	if g.fleet.givesUp(cluster, step) && g.route(clusters, cluster, asks) {
		step = Next(g.fleet, cluster)
	}
	if g.Address != nil && g.fleet.endsLast(cluster, step) {
		m := g.fleet.Members[cluster]
		m.Address = g.Address(g.w, cluster)
		g.fleet.Members[cluster] = m
		step = Next(g.fleet, cluster)
	}
	return step
}

// change returns what is to be reserved for a cluster before its step is written, if the step gives it anything or takes anything from it.
func (f Fleet) change(cluster string, step Step) (reservation, bool) {
	m := f.Members[cluster]
	switch {
	case f.Ordinals:
		granted := f.ordinals(step.Share)
		return reservation{ordinals: granted}, !step.None && granted != m.Asks && !granted.Empty()
	case f.Division == placement.Everywhere:
		return reservation{counts: true}, m.Holds && step.None
	case f.Division == placement.Divisible:
		from, to := m.Told, step.Share.Replicas
		return reservation{counts: true, replicas: Writing{Least: min(from, to), Most: max(from, to)}}, from != to
	}
	return reservation{}, false
}

// Observe returns the fleet of a workload as it is now, without what is found out for a cluster that asks for its step.
func (f *Fleets) Observe(w identity.Workload) Fleet {
	g := f.begin(w)
	g.reserved.mu.Lock()
	defer g.reserved.mu.Unlock()
	for _, c := range f.Clusters() {
		g.add(c, "") // for nobody's sake, so what only who asks needs is left out
	}
	g.finish()
	return g.fleet
}

// Overlaps reports whether ordinals that a cluster may run are those that others were told to run, as when the cluster was lost to them. In a move,
// others are told only when it has none of them. Of those that have not been seen yet, as after a start, the workload's status tells.
func (f *Fleets) Overlaps(w identity.Workload, cluster string, mayRun []placement.Range) bool {
	fleet := f.Observe(w)
	theirs := slices.AppendSeq(fleet.toldElsewhere(cluster), maps.Values(fleet.recordedElsewhere(cluster)))
	return slices.ContainsFunc(mayRun, func(own placement.Range) bool {
		return slices.ContainsFunc(theirs, func(other placement.Range) bool { return !own.Intersect(other).Empty() })
	})
}

// HasLost reports whether a workload has given up a silent cluster, after its time of toleration: whatever may still run there is removed before
// that cluster counts as ready again. One that was chosen away by hand is waited for.
func (f *Fleets) HasLost(w identity.Workload, cluster string) bool {
	g := gathering{Fleets: f, w: w, record: RecordOf(w)}
	return g.lost(cluster)
}

// gathering is a fleet in the making.
type gathering struct {
	*Fleets
	w      identity.Workload
	placed *placement.Workload // once it is needed
	record *Record
	kind   summary.Kind
	counts bool // the kind has a status
	fleet  Fleet
	// reserved is what is reserved of the workload, beside others. Who adds clusters holds its lock.
	reserved *part
	// lives are the projections of the clusters, of which that is known.
	lives map[string]summary.Object
}

func (f *Fleets) begin(w identity.Workload) *gathering {
	g := &gathering{Fleets: f, w: w, record: RecordOf(w), lives: map[string]summary.Object{}, reserved: f.reservations.of(w.Key())}
	demand := g.record.Demand
	g.kind, g.counts = summary.ForResource(w.Kind.Resource)
	g.fleet = Fleet{
		Division: demand.Division, Ordinals: demand.Ordinals, Replicas: demand.Replicas, First: demand.First, Apart: len(identity.MadeThrough(w.Object)) > 0,
		Decision: g.record.Decision, Rollout: demand.Rollout, Members: map[string]Member{},
	}
	return g
}

// add adds a connected cluster, for the sake of the one that asks.
func (g *gathering) add(c Cluster, asks string) {
	name := c.Cluster()
	has := c.Holding(g.w, g.record)
	has.Projection = g.judged(name, has.Projection)
	_, decided := g.fleet.Decision[name]
	reserved := g.reserved.of(g.w.Key(), name)
	if !has.Found && !decided && !g.fleet.Ordinals && !reserved.counts && !g.record.reports(name) {
		return // as most of many clusters
	}
	m := g.known(name)
	m.Connected, m.Synced, m.Failed = true, c.HasSynced(), has.Failed
	m.Shown = m.Synced || has.Found
	if g.fleet.Ordinals {
		m.Keeps, m.Reserved = has.Keeps, reserved.ordinals
	}
	if reserved.counts {
		m.Writing = &reserved.replicas
	}
	live := has.Projection
	if live != nil && m.Synced {
		g.lives[name] = live
	}
	if live != nil && live.GetDeletionTimestamp() == nil {
		g.hold(&m, name, has)
	}
	if !decided && g.fleet.Ordinals && name == asks {
		m.Emptying = c.Emptying(g.w)
	}
	g.fleet.Members[name] = m
}

// hold notes what a cluster's projection says.
func (g *gathering) hold(m *Member, name string, has Holding) {
	live := has.Projection
	asks := g.w.Kind.Demand(live)
	m.Holds, m.Told, m.Ordinals = true, has.Told, has.Ordinals
	if g.fleet.Ordinals {
		m.Asks = placement.Range{Start: asks.First, End: asks.First + asks.Replicas}
	}
	if !g.counts {
		return
	}
	counts := g.kind.Counts(live)
	m.Running, m.Available, m.Observed = counts.Replicas, counts.Available, g.kind.Observed(live) && !has.Behind
	m.Replacing = asks.Rollout != move.Rollout{} && counts.Updated < counts.Replicas
	if share, decided := g.fleet.Decision[name]; decided && g.kind.Paced() {
		rollout := g.kind.RolloutOf(g.w.Object, share, live)
		m.Ahead, m.Updated = rollout.Ahead, rollout.Done
	}
}

// known returns what is known of a cluster without its syncer.
func (g *gathering) known(cluster string) Member {
	var m Member
	m.Silent = g.Silent != nil && g.Silent(cluster)
	if g.Leaving != nil {
		leaving, manner := g.Leaving(cluster)
		m.Leaving, m.Forgotten = leaving, leaving && manner == v1alpha1.RemoveForce
	}
	m.Lost = g.fleet.Ordinals && g.lost(cluster)
	return m
}

// lost is HasLost for the workload at hand.
func (g *gathering) lost(cluster string) bool {
	if _, decided := g.record.Decision[cluster]; decided || g.Lost == nil {
		return false
	}
	if g.placed == nil {
		placed, err := g.w.Kind.WorkloadOf(g.w.Object)
		if err != nil {
			return false
		}
		g.placed = &placed
	}
	return g.Lost(*g.placed, cluster)
}

// takesTurns reports whether a cluster updates its pods after others.
func (g *gathering) takesTurns(cluster string) bool {
	_, decided := g.fleet.Decision[cluster]
	return g.counts && !g.fleet.Apart && g.kind.TakesTurns() && decided && len(g.fleet.Decision) > 1 && g.lives[cluster] != nil
}

// finish adds what no syncer tells.
func (g *gathering) finish() {
	for cluster := range g.fleet.Decision {
		g.mention(cluster)
	}
	for cluster, last := range g.record.Reported() {
		m := g.mention(cluster)
		m.Recorded = &placement.Share{Start: last.Start, Replicas: last.Replicas}
		g.fleet.Members[cluster] = m
	}
}

// order adds after which others a cluster updates its pods.
func (g *gathering) order(cluster string) {
	if g.takesTurns(cluster) {
		m := g.fleet.Members[cluster]
		m.After = g.kind.Behind(g.w.Object, g.livesOf(), cluster)
		g.fleet.Members[cluster] = m
	}
}

// mention adds a cluster that may have no syncer.
func (g *gathering) mention(cluster string) Member {
	m, has := g.fleet.Members[cluster]
	if !has {
		m = g.known(cluster)
		g.fleet.Members[cluster] = m
	}
	return m
}

// livesOf returns what the clusters of the decision hold, nil for one of which that is not known.
func (g *gathering) livesOf() map[string]summary.Object {
	out := map[string]summary.Object{}
	for cluster := range g.fleet.Decision {
		if m := g.fleet.Members[cluster]; !m.Connected || !m.Synced {
			out[cluster] = nil
		} else if live, holds := g.lives[cluster]; holds {
			out[cluster] = live
		}
	}
	return out
}

// route adds how many replicas Services do not lead to yet, of those that are to take the place of what a cluster gives up. It reports whether
// there are any. This takes a search through the pods and Services of a namespace, so it is done only where something is given up.
func (g *gathering) route(clusters []Cluster, cluster, asks string) (unrouted bool) {
	for _, c := range clusters {
		m := g.fleet.Members[c.Cluster()]
		share, decided := g.fleet.Decision[c.Cluster()]
		if !decided || c.Cluster() == cluster || g.fleet.Division == placement.Divisible && m.Told > share.Replicas {
			continue
		}
		if m.Unrouted = c.Unrouted(g.w, m.Available, asks); m.Unrouted > 0 {
			g.fleet.Members[c.Cluster()], unrouted = m, true
		}
	}
	return unrouted
}
