package moves

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// serving is a cluster in which so many replicas run and are available.
func serving(replicas int32) Member {
	return Member{
		Connected: true, Synced: true, Shown: true, Holds: true, Told: replicas, Running: replicas, Available: replicas, Observed: true,
	}
}

// running is a cluster that was told to run ordinals and runs them.
func running(start, end int32) Member {
	m := serving(end - start)
	m.Ordinals, m.Asks, m.Keeps = placement.Range{Start: start, End: end}, placement.Range{Start: start, End: end}, []placement.Range{{Start: start, End: end}}
	return m
}

func but(m Member, change func(*Member)) Member {
	change(&m)
	return m
}

var empty = Member{Connected: true, Synced: true, Shown: true}

func whole(cluster string, replicas int32) placement.Decision {
	return placement.Decision{cluster: {Replicas: replicas}}
}

func TestNextOfReplicas(t *testing.T) {
	one := &v1alpha1.Move{MaxSurge: ptr.To(intstr.FromInt32(1))}
	for name, test := range map[string]struct {
		decision placement.Decision
		asked    int32 // 3 unless it is said
		members  map[string]Member
		move     *v1alpha1.Move
		of       string // east unless it is said
		want     Step
	}{
		"what was decided":                      {decision: whole("east", 3), members: map[string]Member{"east": serving(3)}, want: Step{Share: placement.Share{Replicas: 3}}},
		"nothing, where nothing was":            {decision: whole("west", 3), members: map[string]Member{"east": empty, "west": serving(3)}, want: Step{None: true}},
		"all of it until others serve":          {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": empty}, want: Step{Share: placement.Share{Replicas: 3}, Held: true, Brief: true, Reason: "keeps 3 replicas until replacements are available elsewhere"}},
		"as much as does not serve elsewhere":   {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": but(serving(3), func(m *Member) { m.Available = 2 })}, want: Step{Share: placement.Share{Replicas: 1}, Held: true, Brief: true, Reason: "keeps 1 replica until replacements are available elsewhere"}},
		"as much as no Service leads to":        {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": but(serving(3), func(m *Member) { m.Unrouted = 2 })}, want: Step{Share: placement.Share{Replicas: 2}, Held: true, Brief: true, Reason: "keeps 2 replicas until replacements are available elsewhere"}},
		"what others are giving up":             {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": but(serving(3), func(m *Member) { m.Writing = &Writing{Least: 2, Most: 3} })}, want: Step{Share: placement.Share{Replicas: 1}, Held: true, Brief: true, Reason: "keeps 1 replica until replacements are available elsewhere"}},
		"what others may be ending":             {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": but(serving(3), func(m *Member) { m.Observed = false })}, want: Step{Share: placement.Share{Replicas: 3}, Held: true, Brief: true, Reason: "keeps 3 replicas until replacements are available elsewhere"}},
		"less than others are being given":      {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": but(empty, func(m *Member) { m.Writing = &Writing{Most: 3} })}, want: Step{Share: placement.Share{Replicas: 1}, Held: true, Brief: true, Reason: "runs 1 of 3 replicas until others have stopped elsewhere"}},
		"nothing once they serve":               {decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": serving(3)}, want: Step{None: true}},
		"what has nowhere to go":                {members: map[string]Member{"east": serving(3)}, want: Step{Share: placement.Share{Replicas: 3}, Held: true, Brief: true, Reason: "keeps what it has: no cluster has been chosen"}},
		"nothing, where it is removed":          {members: map[string]Member{"east": but(serving(3), func(m *Member) { m.Leaving = true })}, want: Step{None: true}},
		"as much as may be extra":               {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": serving(3)}, want: Step{Share: placement.Share{Replicas: 1}, Held: true, Brief: true, Reason: "runs 1 of 3 replicas until others have stopped elsewhere"}},
		"all, where the others are silent":      {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": but(serving(3), func(m *Member) { m.Silent = true })}, want: Step{Share: placement.Share{Replicas: 3}}},
		"what was recorded counts until seen":   {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": {Recorded: &placement.Share{Replicas: 3}}}, want: Step{Share: placement.Share{Replicas: 1}, Held: true, Brief: true, Reason: "runs 1 of 3 replicas until others have stopped elsewhere"}},
		"and not once it is seen to be gone":    {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": {Connected: true, Synced: true, Shown: true, Recorded: &placement.Share{Replicas: 3}}}, want: Step{Share: placement.Share{Replicas: 3}}},
		"nobody counts on what is given up":     {decision: whole("east", 3), move: one, members: map[string]Member{"east": empty, "west": but(serving(3), func(m *Member) { m.Forgotten = true })}, want: Step{Share: placement.Share{Replicas: 3}}},
		"a workload that shrinks gives at once": {decision: whole("east", 1), asked: 1, members: map[string]Member{"east": serving(3)}, want: Step{Share: placement.Share{Replicas: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Division: placement.Divisible, Replicas: 3, Decision: test.decision, Move: test.move, Members: test.members}
			if test.asked > 0 {
				f.Replicas = test.asked
			}
			if got := Next(f, "east"); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestClustersThatHoldWhatTheirViewsSayWaitForNoOthers(t *testing.T) {
	both := placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 4}}
	for name, test := range map[string]struct {
		division placement.Division
		decision placement.Decision
		members  map[string]Member
		want     Step
	}{
		"what shrinks does so although others do not serve": {placement.Divisible, both, map[string]Member{"east": serving(3), "west": empty}, Step{Share: placement.Share{Replicas: 1}}},
		"what is taken away goes although others do not":    {placement.Divisible, whole("west", 4), map[string]Member{"east": serving(3), "west": empty}, Step{None: true}},
		"so does what runs on each node":                    {placement.Everywhere, whole("west", 0), map[string]Member{"east": serving(3), "west": empty}, Step{None: true}},
		"before anything is decided it keeps what it has": {placement.Divisible, nil, map[string]Member{"east": serving(3)},
			Step{Share: placement.Share{Replicas: 3}, Held: true, Brief: true, Reason: nowhere}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Division: test.division, Apart: true, Replicas: 5, Decision: test.decision, Members: test.members}
			if got := Next(f, "east"); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestNextOfOrdinals(t *testing.T) {
	share := func(start, replicas int32) placement.Share { return placement.Share{Start: start, Replicas: replicas} }
	emptying := func(m *Member) { m.Emptying = true }
	ahead := func(m *Member) { m.Ahead = true }
	split := placement.Decision{"east": share(0, 2), "west": share(2, 2)}
	for name, test := range map[string]struct {
		decision placement.Decision
		asked    int32
		members  map[string]Member
		want     Step
	}{
		"what nobody else runs": {
			decision: whole("east", 3), asked: 3, members: map[string]Member{"east": empty, "west": empty}, want: Step{Share: share(0, 3)},
		},
		"what others do not run": {
			decision: whole("east", 3), asked: 3, members: map[string]Member{"east": empty, "west": running(2, 3)},
			want: Step{Share: share(0, 2), Held: true, Reason: `waits for ordinal 2 to stop in cluster "west"`},
		},
		"a single one": {
			decision: whole("east", 1), asked: 1, members: map[string]Member{"east": empty, "west": running(0, 1)},
			want: Step{Held: true, Reason: `waits for ordinal 0 to stop in cluster "west"`},
		},
		"none of those that were written elsewhere": {
			decision: whole("east", 3), asked: 3,
			members: map[string]Member{"east": empty, "west": but(empty, func(m *Member) { m.Reserved = placement.Range{End: 3} })},
			want:    Step{Held: true, Reason: `waits for ordinals 0-2 to stop in cluster "west"`},
		},
		"none of a cluster that nobody can ask": {
			decision: whole("east", 3), asked: 3, members: map[string]Member{"east": empty, "west": {Recorded: &placement.Share{Replicas: 3}}},
			want: Step{Held: true, Reason: `waits for ordinals 0-2 to stop in cluster "west"`},
		},
		"those of one that is lost": {
			decision: whole("east", 3), asked: 3, members: map[string]Member{"east": empty, "west": {Lost: true, Recorded: &placement.Share{Replicas: 3}}},
			want: Step{Share: share(0, 3)},
		},
		"those of one that is removed by force": {
			decision: whole("east", 3), asked: 3, members: map[string]Member{"east": empty, "west": but(running(0, 3), func(m *Member) { m.Forgotten = true })},
			want: Step{Share: share(0, 3)},
		},
		"the highest is handed over": {
			decision: whole("west", 3), asked: 3, members: map[string]Member{"east": but(running(0, 3), emptying), "west": empty},
			want: Step{Share: share(0, 2), Held: true, Brief: true, Reason: "keeps ordinals 0-1 until replacements are available elsewhere"},
		},
		"and the next only when that serves": {
			decision: whole("west", 3), asked: 3,
			members: map[string]Member{"east": but(running(0, 2), emptying), "west": but(running(2, 3), func(m *Member) { m.Available = 0 })},
			want:    Step{Share: share(0, 2), Held: true, Brief: true, Reason: "keeps ordinals 0-1 until replacements are available elsewhere"},
		},
		"and a Service leads to it": {
			decision: whole("west", 3), asked: 3,
			members: map[string]Member{"east": but(running(0, 2), emptying), "west": but(running(2, 3), func(m *Member) { m.Unrouted = 1 })},
			want:    Step{Share: share(0, 2), Held: true, Brief: true, Reason: "keeps ordinals 0-1 until replacements are available elsewhere"},
		},
		"all at once where none serves": {
			decision: whole("west", 3), asked: 3,
			members: map[string]Member{"east": but(running(0, 3), func(m *Member) { m.Emptying, m.Available = true, 0 }), "west": empty},
			want:    Step{Held: true, Brief: true, Reason: "stays until its last pods have stopped"},
		},
		"what has nowhere to go stays": {
			asked: 3, members: map[string]Member{"east": but(running(0, 3), emptying)}, want: Step{Share: share(0, 3), Held: true, Brief: true, Reason: "keeps what it has: no cluster has been chosen"},
		},
		"a cluster without any holds nothing": {
			decision: whole("west", 3), asked: 3, members: map[string]Member{"east": empty, "west": running(0, 3)}, want: Step{None: true},
		},
		"the lower ordinals are updated last": {
			decision: split, asked: 4, members: map[string]Member{"east": but(running(0, 2), ahead), "west": but(running(2, 4), ahead)},
			want: Step{Share: share(0, 2), Paced: true, Reason: `waits for the pods with higher ordinals to be updated in cluster "west"`},
		},
		"when the higher ones are": {
			decision: split, asked: 4,
			members: map[string]Member{"east": but(running(0, 2), ahead), "west": but(running(2, 4), func(m *Member) { m.Updated = true })},
			want:    Step{Share: share(0, 2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Division: placement.DivisibleByName, Ordinals: true, Replicas: test.asked, Decision: test.decision, Members: test.members}
			if got := Next(f, "east"); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestNextWhereverNodesAre(t *testing.T) {
	toWest := placement.Decision{"west": {}}
	for name, test := range map[string]struct {
		decision placement.Decision
		members  map[string]Member
		want     Step
	}{
		"it stays where it is to be":  {decision: placement.Decision{"east": {}}, members: map[string]Member{"east": serving(3)}},
		"it is kept until others run": {decision: toWest, members: map[string]Member{"east": serving(3), "west": empty}, want: Step{Held: true, Brief: true, Reason: "keeps its pods until replacements are available elsewhere"}},
		"nor for what is about to leave": {
			decision: toWest, members: map[string]Member{"east": serving(3), "west": but(serving(3), func(m *Member) { m.Writing = &Writing{} })},
			want: Step{Held: true, Brief: true, Reason: "keeps its pods until replacements are available elsewhere"},
		},
		"it leaves when they do": {decision: toWest, members: map[string]Member{"east": serving(3), "west": serving(3)}, want: Step{None: true}},
		"it waits for its turn": {
			decision: placement.Decision{"east": {}, "west": {}},
			members:  map[string]Member{"east": but(serving(3), func(m *Member) { m.After = []string{"west"} }), "west": serving(3)},
			want:     Step{Paced: true, Reason: `waits for cluster "west" to finish updating: no more replicas may be unavailable`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Division: placement.Everywhere, Decision: test.decision, Members: test.members}
			if got := Next(f, "east"); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
