package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Request asks for a decision about one workload.
type Request struct {
	Workload Workload
	// Policy is the one that SelectPolicy found; nil means that a workload goes to one cluster whole.
	Policy *Policy
	// Current is the last decision.
	Current Decision
	// Neighbours tell where the other workloads of the namespace are; only a request that KeepsTogether reads them.
	Neighbours Neighbours
	// Others are the other workloads, of the workload's namespace or of all. Only affinity reads them: that of the workload's policy, see
	// Policy.NeedsOthers, and antiAffinity of theirs, see KeptApart.
	Others []Other
	// Evict names clusters that the workload is to leave: drained, or unreachable for longer than is tolerated. Replicas leave
	// such a cluster only as far as they fit elsewhere.
	Evict map[string]bool
	// Lost names those of them that nobody can ask what still runs there, Forced those that an admin wants empty at any price. What is
	// Fixed leaves them too, if it is whole and Restarts.
	Lost, Forced map[string]bool
	// Stuck tells what clusters cannot run of their shares; see Unschedulable. Tolerated is for how long that is endured.
	Stuck     map[string]Stuck
	Tolerated time.Duration
	// Displaced tells what the workload may keep in clusters where others of higher priority want room.
	Displaced map[string]Displaced
	// Lower tells what clusters run of lower priority. Preempt alone reads it, and needs it.
	Lower map[string]Lower
	// Rivals are workloads of higher priority, for messages about what is stuck for lack of room.
	Rivals []Rival
	// Now is the time. It matters to the workload's failures alone.
	Now time.Time
}

// Place decides where the workload runs.
//
// What runs stays where it is, unless the pin or the policy no longer selects the cluster, the request evicts it, or an even or
// weighted division asks for another share. What a cluster cannot schedule goes elsewhere, if another one can take it. A cluster
// that is selected but may take nothing new (cordoned, not ready, tainted) keeps its share and never gets more. Replicas that fit
// nowhere are given to the clusters that could take at least one, where their pods wait: a workload is split between running and
// waiting rather than refused. Only what no cluster may take is unplaced, and if that is everything, the decision is empty; but
// replicas never leave a cluster for nowhere.
//
// A workload of no replicas is placed too, on one cluster (or on each of them if it is duplicated), so that it exists and has a
// place to start from when it is scaled up. Otherwise only clusters with replicas are part of the decision.
func Place(s Snapshot, r Request) Result {
	if r.Workload.Never != "" {
		return nowhere(&r)
	}
	c := newCycle(s, &r)
	c.filter()
	c.makeWay()
	c.avoid()
	c.keepToVolumes()
	c.measure()
	c.narrow()
	if !r.Workload.Fixed || r.restarts() || !c.keepAll() {
		if r.Workload.Numbered {
			c.handNumbered()
		} else {
			c.strategy.hand(c)
		}
		c.anchor()
	}
	return c.result()
}

// nowhere is the decision about a workload that no cluster may have. It looks at none of them, so nobody is told of their room.
func nowhere(r *Request) Result {
	out := Result{Unplaced: max(0, r.Workload.Replicas), Notes: []string{r.Workload.Never}}
	if r.Workload.Division == Everywhere {
		out.Unplaced = 0 // the nodes would say how many
	}
	return out
}

// restarts tells whether the workload has lost its only cluster, or is forced off it, and may start over. What nothing ran of may as well.
func (r *Request) restarts() bool {
	for name := range r.Current {
		return len(r.Current) == 1 && r.Workload.Restarts && (r.Lost[name] || r.Forced[name] || r.Workload.Unstarted && r.idle())
	}
	return false
}

// cycle is the state of one decision.
type cycle struct {
	request    *Request
	replicas   int64
	kind       string
	kinds      []string // in each version that will do, that of kind first
	strategy   strategy
	problem    string    // what is wrong with the policy, if anything
	rules                // which clusters are chosen
	pinned     bool      // the choice is the user's pin, not the policy's
	least      int64     // what a cluster gets at least, unless it gets nothing; 1 if nobody asks for more
	needs      []request // what one replica needs
	claims     []request // what its volume claims need, where that is bounded
	measured   []corev1.ResourceName
	free       []int64 // for each candidate the free amounts of measured; that of needs come first
	candidates []candidate
	places     map[string]int // of candidates, by name
	parts      []part         // memory for assign, which a spread calls for every domain
	unplaced   int64
}

// candidate is one cluster in a decision.
type candidate struct {
	*Cluster
	reasons []Reason
	holds   bool  // part of the last decision
	current int64 // its replicas of the last decision
	runs    bool  // has replicas to lose, or is where a workload of none is kept
	fits    int64 // replicas that have room beside these
	stuck   int64 // replicas of the last decision that it cannot schedule; current is without these, unless all is evicted
	kept    int64 // those of them that have no other place
	// displaced are those of stuck that make room for others, though they run.
	displaced int64
	awaited   int64 // replicas of nobody's that wait for it, as it has their volumes
	score     int64
	group     int   // the group of the policy that it belongs to
	prefers   int64 // how much the policy prefers it

	// What the filters found. All are about further replicas except leaves and evicted, which are about the current ones too.
	leaves  bool // not chosen any more
	evicted bool // to be left
	tied    bool // should be left, and is not, because of its volumes
	frozen  bool // may take nothing, whatever its room
	full    bool // has no room for one more

	required bool // must get something, if that can be

	placed bool
	share  int64
	start  int64 // the number of its first replica, where they are numbered; at first that of the last decision
	ranged bool  // has a range of the last decision that is not all beyond the end
	copy   bool  // the share is all of a workload that others have all of as well
}

// takes tells whether the cluster may take further replicas and has room for one.
func (c *candidate) takes() bool { return !c.leaves && !c.evicted && !c.frozen && !c.full }

// stays tells whether the cluster keeps replicas that it has.
func (c *candidate) stays() bool { return c.runs && !c.leaves && !c.evicted }

// stretches tells whether the cluster may get replicas that it has no room for, to wait there.
func (c *candidate) stretches() bool { return c.takes() || c.stays() && !c.frozen }

// queues tells whether replicas that have room nowhere may wait with those that the cluster cannot schedule.
func (c *candidate) queues() bool { return c.stuck > 0 && !c.leaves && !c.evicted && !c.frozen }

// bound is the number of replicas that the cluster has room for in all.
func (c *candidate) bound() int64 {
	switch {
	case c.takes(), c.stays() && !c.frozen:
		return min(unbounded, c.current+c.fits)
	case c.stays():
		return c.current
	default:
		return 0
	}
}

func (c *candidate) give(replicas int64) {
	if replicas > 0 {
		c.placed = true
		c.share += replicas
	}
}

func newCycle(s Snapshot, r *Request) *cycle {
	c := &cycle{
		request:    r,
		replicas:   max(0, int64(r.Workload.Replicas)),
		kind:       KindName(r.Workload.GVK),
		kinds:      r.Workload.kindNames(),
		needs:      r.Workload.Requests.sorted(),
		claims:     r.Workload.ClaimRequests.sorted(),
		candidates: make([]candidate, len(s.clusters)),
		places:     s.places,
	}
	c.choose()
	for i, cluster := range s.clusters {
		share, holds := r.Current[cluster.Name]
		current := max(0, int64(share.Replicas))
		c.candidates[i] = candidate{
			Cluster: cluster, holds: holds, current: current, runs: holds && (current > 0 || c.replicas == 0),
			start: max(0, int64(share.Start)),
		}
	}
	return c
}

// choose reads the pin and the policy.
func (c *cycle) choose() {
	c.strategy, c.problem = strategyOf(c.request)
	c.least = leastOf(c.request.Policy, c.replicas)
	if w := &c.request.Workload; w.isPinned() {
		c.pinned = true
		if pin := w.Pin; !pin.All {
			c.names = setOf(pin.Names)
		}
		return
	}
	rules, problem := readRules(c.request.Policy, c.request, c.replicas)
	c.rules = rules
	c.shun(c.request)
	if problem != "" {
		c.problem = problem
	}
}

// leastOf is the smallest share that the policy allows. A workload of fewer replicas goes whole to one cluster. What is spread or
// goes by groups has no least: each could undo for ever what the other one did.
func leastOf(p *Policy, replicas int64) int64 {
	if p == nil || p.Spec.Division == nil || len(p.Spec.Spread)+len(p.Spec.Groups) > 0 {
		return 1
	}
	return max(1, min(int64(p.Spec.Division.MinReplicas), replicas))
}

// find returns the candidate of that name; nil if there is none.
func (c *cycle) find(name string) *candidate {
	if i, joined := c.places[name]; joined {
		return &c.candidates[i]
	}
	return nil
}

// keepAll leaves everything where it is, and tells whether there was anything.
func (c *cycle) keepAll() bool {
	any := false
	for i := range c.candidates {
		if k := &c.candidates[i]; k.holds {
			k.placed, k.share, k.copy, any = true, k.current, c.request.Current[k.Name].Copy, true
		}
	}
	return any
}

// anchor keeps a workload of no replicas on one cluster.
func (c *cycle) anchor() {
	if c.replicas > 0 {
		return
	}
	for i := range c.candidates {
		if c.candidates[i].placed {
			return
		}
	}
	keeper := c.best(wholeOrder, func(k *candidate) bool { return k.takes() || k.stays() })
	if keeper == nil {
		keeper = c.best(wholeOrder, func(k *candidate) bool { return k.runs })
	}
	if keeper != nil {
		keeper.placed = true
	}
}

func (c *cycle) result() Result {
	r := Result{
		Unplaced: int32(c.unplaced),
		Verdicts: make([]Verdict, len(c.candidates)),
		Policy:   c.request.Policy.String(),
		Strategy: c.strategy.name,
	}
	r.Displaced = c.displaced()
	r.Moved, r.Stuck = c.countStuck()
	shares := c.shares()
	if len(shares) > 0 {
		r.Decision = make(Decision, len(shares))
	}
	for i := range c.candidates {
		k, v := &c.candidates[i], &r.Verdicts[i]
		v.Cluster, v.Feasible, v.Reasons = k.Name, k.takes(), k.reasons
		v.Score, v.Fits, v.Preference = k.score, k.fits, k.prefers
		if len(c.groups) > 0 && k.group >= 0 {
			v.Group = c.groups[k.group].name
		}
		if k.placed {
			r.Decision[k.Name] = shares[0]
			v.Share, shares = &shares[0], shares[1:]
		}
	}
	r.Verdicts = c.addAbsent(r.Verdicts)
	r.Failures = c.remembered(r.Decision)
	r.Tied = c.tied()
	r.Notes = c.remarks(r)
	return r
}

// shares are those of the clusters that have one, by name.
func (c *cycle) shares() []Share {
	placed := 0
	for i := range c.candidates {
		if c.candidates[i].placed {
			placed++
		}
	}
	shares := make([]Share, 0, placed)
	for i := range c.candidates {
		if k := &c.candidates[i]; k.placed {
			share := Share{Replicas: int32(k.share), Copy: k.copy}
			if c.request.Workload.Numbered && k.share > 0 {
				share.Start = int32(k.start)
			}
			shares = append(shares, share)
		}
	}
	return shares
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}
