package decide

import (
	"slices"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/divide"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/stuck"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// notes are what a person would be surprised to find out by looking at a result.
func notes(f *rules.Field, r *placement.Result) []words.Note {
	if len(r.Decision) == 0 {
		return nil // the refusal says it all
	}
	var out []words.Note
	for _, find := range []func(*rules.Field, *placement.Result) words.Note{
		noteAbsent, noteWhole, noteOneCopy, noteIndivisible, noteNotTogether, noteNotEverywhere, noteOverflow, noteFewClusters, noteBounded,
		noteNoRoom, noteAwaited, noteTied, noteStaying, noteStuck, noteDisplaced,
	} {
		if n := find(f, r); n.Code != "" {
			out = append(out, n)
		}
	}
	return out
}

// partsOf are the candidates of which a note tells.
func partsOf(f *rules.Field, part func(*rules.Candidate) (words.Part, bool)) (out []words.Part) {
	for _, k := range f.Candidates {
		if p, is := part(k); is {
			p.Name = k.Name
			out = append(out, p)
		}
	}
	return out
}

// noteAbout is the note, if there is any candidate that it is about.
func noteAbout(code words.NoteCode, parts []words.Part) words.Note {
	if len(parts) == 0 {
		return words.Note{}
	}
	return words.Note{Code: code, Parts: parts}
}

// noteFirst is the note on the first of the candidates where it is about any replicas, of which there may be many, and on how many more there
// are.
func noteFirst(code words.NoteCode, f *rules.Field, replicas func(*rules.Candidate) int64) (n words.Note) {
	for _, k := range f.Candidates {
		here := replicas(k)
		switch {
		case here <= 0:
		case len(n.Parts) == words.NamedClusters:
			n.More++
		default:
			n.Code, n.Parts = code, append(n.Parts, words.Part{Name: k.Name, Replicas: here})
		}
	}
	return n
}

// noteAbsent names what was asked for and has not joined, unless a count of all clusters says so.
func noteAbsent(_ *rules.Field, r *placement.Result) words.Note {
	if _, feasible := r.Count(); r.Unplaced > 0 && feasible == 0 {
		return words.Note{}
	}
	var absent []words.Part
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Absent() {
			absent = append(absent, v.Part())
		}
	}
	return noteAbout(words.NoteNotJoined, absent)
}

// noteWhole says why replicas wait for one cluster although others might take them.
func noteWhole(f *rules.Field, r *placement.Result) words.Note {
	if f.Strategy != placement.Whole || r.Unplaced == 0 {
		return words.Note{}
	}
	for _, k := range f.Candidates {
		if k.Placed && len(k.Reasons) > 0 {
			return noteAbout(words.NoteWhole, []words.Part{{Name: k.Name, Reason: k.Reasons[0]}})
		}
	}
	return words.Note{}
}

// noteOneCopy says why there is one copy although the policy asks for one in each cluster.
func noteOneCopy(f *rules.Field, _ *placement.Result) words.Note {
	w, policy := &f.Request.Workload, f.Request.Policy
	if !w.Ordinals || f.Strategy != placement.Whole || !rules.MayDivide(w, policy) || !rules.Duplicates(policy) {
		return words.Note{}
	}
	return words.Note{Code: words.NoteOneCopy, Subject: policy.String()}
}

// noteIndivisible says why a workload is not divided that the policy would divide by name of its kind.
func noteIndivisible(f *rules.Field, _ *placement.Result) words.Note {
	w := &f.Request.Workload
	if w.Whole == "" || !rules.DividedByName(w, f.Request.Policy) {
		return words.Note{}
	}
	return words.Note{Code: words.NoteIndivisible, Subject: w.Whole}
}

// noteNotTogether says what is not where the namespace is kept together, and why.
func noteNotTogether(f *rules.Field, _ *placement.Result) words.Note {
	if !f.Request.KeepsTogether() {
		return words.Note{}
	}
	home := homeOf(f)
	if home == nil || home.Share == f.Replicas {
		return words.Note{}
	}
	part, because := words.Part{Name: home.Name}, words.BecauseRunning
	switch {
	case len(home.Reasons) > 0:
		part.Reason = home.Reasons[0]
	case anyGrows(f, home):
		because = words.BecauseFull
	}
	return words.Note{
		Code: words.NoteNotTogether, Subject: f.Request.Workload.Namespace, Parts: []words.Part{part}, Because: because,
		Replicas: f.Replicas - home.Share, Of: f.Replicas,
	}
}

// anyGrows reports whether any cluster but home gets more than it has.
func anyGrows(f *rules.Field, home *rules.Candidate) bool {
	return slices.ContainsFunc(f.Candidates, func(k *rules.Candidate) bool { return k != home && k.Share > k.Current })
}

// homeOf is where the namespace is kept together: where its neighbours are, else where the workload itself has most.
func homeOf(f *rules.Field) *rules.Candidate {
	if home := f.Find(f.Request.Neighbours.Home()); home != nil {
		return home
	}
	var most *rules.Candidate
	for _, k := range f.Candidates {
		if k.Placed && (most == nil || k.Share > most.Share) {
			most = k
		}
	}
	return most
}

// noteNotEverywhere says which chosen clusters do not have what each of them is to have.
func noteNotEverywhere(f *rules.Field, r *placement.Result) words.Note {
	if f.Strategy != placement.Duplicate && f.Strategy != placement.EachCluster {
		return words.Note{}
	}
	n := noteAbout(words.NoteNotEverywhere, partsOf(f, func(k *rules.Candidate) (p words.Part, is bool) {
		if len(k.Reasons) > 0 {
			p.Reason = k.Reasons[0]
		}
		return p, !k.Placed && k.Chosen()
	}))
	n.Of = int64(len(n.Parts) + len(r.Decision))
	return n
}

// noteOverflow says what is not in the first group, where all should be.
func noteOverflow(f *rules.Field, _ *placement.Result) words.Note {
	if f.Strategy == placement.EachCluster {
		return words.Note{}
	}
	beyond := make([]int64, len(f.Groups))
	for _, k := range f.Candidates {
		if k.Placed && k.Group > 0 && !k.Leaves {
			beyond[k.Group] += k.Share
		}
	}
	var parts []words.Part
	for i, replicas := range beyond {
		if replicas > 0 {
			parts = append(parts, words.Part{Name: f.Groups[i].Name, Replicas: replicas})
		}
	}
	return noteAbout(words.NoteOverflow, parts)
}

// noteFewClusters says that there are fewer clusters than the policy asks for.
func noteFewClusters(f *rules.Field, _ *placement.Result) words.Note {
	divides := f.Strategy.Divides()
	if f.MinClusters == 0 || !divides && f.Strategy != placement.Duplicate {
		return words.Note{}
	}
	used := int64(0)
	for _, k := range f.Candidates {
		if k.Placed && (k.Share > 0 || f.Replicas == 0) && k.Chosen() {
			used++
		}
	}
	if used >= f.MinClusters || divides && used >= f.Replicas {
		return words.Note{}
	}
	return words.Note{Code: words.NoteFewClusters, Subject: f.Policy, Replicas: used, Of: f.MinClusters}
}

// noteBounded says which rules of the policy leave replicas unplaced although clusters have room.
func noteBounded(f *rules.Field, r *placement.Result) words.Note {
	if r.Unplaced == 0 {
		return words.Note{}
	}
	n := words.Note{}
	for i := range f.Groups {
		if g := &f.Groups[i]; g.Limit < placement.Unbounded && f.InGroup(i) >= g.Limit {
			n.Code, n.Parts = words.NoteBounded, append(n.Parts, words.Part{Name: g.Name, Replicas: g.Limit})
		}
	}
	for i := range f.Spread {
		if s := &f.Spread[i]; rules.Strict(s) && f.Strategy.Divides() {
			n.Code, n.Skews = words.NoteBounded, append(n.Skews, words.Part{Name: s.TopologyKey, Replicas: divide.SkewOf(s)})
		}
	}
	return n
}

// noteNoRoom says which replicas were given to clusters that have no room for them.
func noteNoRoom(f *rules.Field, _ *placement.Result) words.Note {
	return noteFirst(words.NoteNoRoom, f, func(k *rules.Candidate) int64 {
		if !k.Placed || !k.Stretches() {
			return 0
		}
		return k.Share - k.Kept - k.Bound()
	})
}

// noteAwaited says which clusters replicas wait for, as their volumes are there.
func noteAwaited(f *rules.Field, _ *placement.Result) words.Note {
	if len(f.Request.Workload.Kept) == 0 {
		return words.Note{}
	}
	return noteAbout(words.NoteAwaitsVolumes, partsOf(f, func(k *rules.Candidate) (words.Part, bool) {
		if k.Awaited == 0 || len(k.Reasons) == 0 {
			return words.Part{}, false
		}
		return words.Part{Replicas: k.Awaited, Reason: k.Reasons[0]}, true
	}))
}

// noteTied says which clusters replicas should leave and do not, as their volumes cannot follow.
func noteTied(_ *rules.Field, r *placement.Result) words.Note {
	var parts []words.Part
	for _, name := range r.Tied {
		parts = append(parts, words.Part{Name: name})
	}
	return noteAbout(words.NoteTied, parts)
}

// noteStaying says which replicas should leave their cluster and cannot, for other reasons than their volumes.
func noteStaying(f *rules.Field, r *placement.Result) words.Note {
	code := words.NoteStays
	if f.Request.Workload.Fixed {
		code = words.NoteStarted
	}
	return noteFirst(code, f, func(k *rules.Candidate) int64 {
		if !k.Placed || k.Chosen() || k.Stuck > 0 || slices.Contains(r.Tied, k.Name) {
			return 0
		}
		if _, displaced := f.Request.Displaced[k.Name]; displaced && !k.Leaves {
			return 0 // noteDisplaced tells of these
		}
		return k.Share
	})
}

// noteStuck says which replicas stay although their cluster cannot run them, and why.
func noteStuck(f *rules.Field, _ *placement.Result) words.Note {
	if len(f.Request.Stuck) == 0 {
		return words.Note{}
	}
	movable := false
	n := noteAbout(words.NoteStuck, partsOf(f, func(k *rules.Candidate) (words.Part, bool) {
		left := stuck.Staying(f, k)
		if left == 0 {
			return words.Part{}, false
		}
		movable = movable || k.Stuck > 0
		stuck := f.Request.Stuck[k.Name]
		return words.Part{Replicas: left, Reason: stuck.Reason(), Subject: comesFirst(f, k.Name, stuck)}, true
	}))
	if n.Code == "" {
		return n
	}
	n.Because = stuck.StaysWhole(f)
	switch {
	case n.Because != "":
	case f.Request.Workload.Ordinals && !movable:
		n.Because = stuck.WhyOrdinalsStay(f)
	default:
		n.Because = words.BecauseNoOther
	}
	return n
}

// comesFirst names what has a higher priority in a cluster that has no room for what is stuck there.
func comesFirst(f *rules.Field, cluster string, stuck placement.Stuck) string {
	if stuck.Cause != placement.CauseNoRoom {
		return ""
	}
	var names []string
	for _, rival := range placement.ByPriority(f.Request.Rivals) {
		if rival.Priority > f.Request.Workload.Priority && rival.Decision[cluster].Replicas > 0 {
			names = append(names, rival.Name)
		}
	}
	return words.Few(names)
}

// noteDisplaced says which replicas should make room and have no other place.
func noteDisplaced(f *rules.Field, _ *placement.Result) words.Note {
	if len(f.Request.Displaced) == 0 {
		return words.Note{}
	}
	return noteAbout(words.NoteDisplaced, partsOf(f, func(k *rules.Candidate) (words.Part, bool) {
		by, is := f.Request.Displaced[k.Name]
		more := k.Share - int64(by.Keep)
		return words.Part{Replicas: more, Subject: by.By}, is && more > 0 && (k.Displaced > 0 || k.Evicted)
	}))
}
