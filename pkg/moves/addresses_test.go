package moves

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestTheLastReplicasStayAsLongAsAddressesLeadToThem(t *testing.T) {
	noon := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	used := &Address{Address: "192.0.2.1", Of: "Service web"}
	withdrawn := &Address{Address: "192.0.2.1", Of: "Service web", Withdrawn: noon, Until: noon.Add(30 * time.Second)}
	alone := &Address{Address: "192.0.2.1", Of: "Ingress web", Alone: noon.Add(5 * time.Minute)}
	at := func(m Member, a *Address) Member { m.Address = a; return m }
	share := func(start, replicas int32) placement.Share { return placement.Share{Start: start, Replicas: replicas} }
	emptying := func(m *Member) { m.Emptying = true }
	elsewhere := placement.Decision{"west": {}}
	for name, test := range map[string]struct {
		division placement.Division
		ordinals bool
		replicas int32 // 3 unless it is said
		decision placement.Decision
		members  map[string]Member
		want     Step
	}{
		"while it is in the status": {
			decision: whole("west", 3), members: map[string]Member{"east": at(serving(3), used), "west": serving(3)},
			want: Step{Share: share(0, 3), Held: true, Addressed: true, Brief: true,
				Reason: "keeps its last 3 replicas until address 192.0.2.1 of Service web has left the status"},
		},
		"while it has left, and is used": {
			decision: whole("west", 3), members: map[string]Member{"east": at(serving(1), withdrawn), "west": serving(3)},
			want: Step{Share: share(0, 1), Held: true, Addressed: true, Until: noon.Add(30 * time.Second),
				Reason: "keeps its last 1 replica until 12:00:30 UTC: address 192.0.2.1 of Service web left the status at 12:00:00 UTC, and is used for up to 30s more"},
		},
		"while no other takes its place": {
			decision: whole("west", 3), members: map[string]Member{"east": at(serving(3), alone), "west": serving(3)},
			want: Step{Share: share(0, 3), Held: true, Addressed: true,
				Reason: "keeps its last 3 replicas until another cluster has an address of Ingress web to take the place of 192.0.2.1, at most until 12:05:00 UTC"},
		},
		"as long as some stay anyway, the others go": {
			decision: whole("west", 3), members: map[string]Member{"east": at(serving(3), used), "west": but(serving(3), func(m *Member) { m.Available = 2 })},
			want: Step{Share: share(0, 1), Held: true, Brief: true, Reason: "keeps 1 replica until replacements are available elsewhere"},
		},
		"a cluster that keeps a share waits for nothing": {
			decision: placement.Decision{"east": share(0, 1), "west": share(0, 2)}, members: map[string]Member{"east": at(serving(3), used), "west": serving(2)},
			want: Step{Share: share(0, 1)},
		},
		"without an address nothing is waited for": {
			decision: whole("west", 3), members: map[string]Member{"east": serving(3), "west": serving(3)}, want: Step{None: true},
		},
		"of what is scaled to nothing, none stay": {
			replicas: -1, decision: whole("west", 0), members: map[string]Member{"east": at(serving(3), used), "west": serving(3)}, want: Step{None: true},
		},
		"what does not serve is not worth keeping": {
			decision: whole("west", 3), members: map[string]Member{"east": at(but(serving(3), func(m *Member) { m.Available = 0 }), used), "west": serving(3)},
			want: Step{None: true},
		},
		"a cluster that is silent does not wait for its address": {
			decision: whole("west", 3), members: map[string]Member{"east": at(but(serving(3), func(m *Member) { m.Silent = true }), used), "west": serving(3)},
			want: Step{Share: share(0, 3), Held: true, Brief: true, Reason: "keeps 3 replicas until replacements are available elsewhere"},
		},
		"a cluster that is removed by force waits for nothing": {
			decision: whole("west", 3),
			members:  map[string]Member{"east": at(but(serving(3), func(m *Member) { m.Leaving, m.Forgotten = true, true }), used), "west": serving(3)},
			want:     Step{None: true},
		},
		"one that is removed waits": {
			decision: whole("west", 3), members: map[string]Member{"east": at(but(serving(3), func(m *Member) { m.Leaving = true }), used), "west": serving(3)},
			want: Step{Share: share(0, 3), Held: true, Addressed: true, Brief: true,
				Reason: "keeps its last 3 replicas until address 192.0.2.1 of Service web has left the status"},
		},
		"the last ordinals": {
			ordinals: true, decision: whole("west", 3),
			members: map[string]Member{"east": at(but(running(0, 1), emptying), used), "west": running(1, 3)},
			want: Step{Share: share(0, 1), Held: true, Addressed: true, Brief: true,
				Reason: "keeps ordinal 0 until address 192.0.2.1 of Service web has left the status"},
		},
		"but for those that serve nowhere else": {
			ordinals: true, replicas: 1, decision: whole("west", 1),
			members: map[string]Member{"east": at(but(running(0, 1), emptying), used), "west": empty},
			want:    Step{Held: true, Brief: true, Reason: "stays until its last pods have stopped"},
		},
		"ordinals before the last go": {
			ordinals: true, decision: whole("west", 3),
			members: map[string]Member{"east": at(but(running(0, 2), emptying), used), "west": running(2, 3)},
			want:    Step{Share: share(0, 1), Held: true, Brief: true, Reason: "keeps ordinal 0 until replacements are available elsewhere"},
		},
		"the pods on each node": {
			division: placement.Everywhere, decision: elsewhere, members: map[string]Member{"east": at(serving(2), used), "west": serving(2)},
			want: Step{Held: true, Addressed: true, Brief: true, Reason: "keeps its pods until address 192.0.2.1 of Service web has left the status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Division: placement.Divisible, Replicas: 3, Ordinals: test.ordinals, Decision: test.decision, Members: test.members}
			if test.division != "" {
				f.Division = test.division
			}
			if test.replicas != 0 {
				f.Replicas = max(0, test.replicas)
			}
			if got := Next(f, "east"); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if test.want.Addressed {
				free := f.Members["east"]
				free.Address = nil
				f.Members["east"] = free
				if got := Next(f, "east"); !got.None && !got.Share.Ordinals(0).Empty() {
					t.Errorf("without the address it keeps %+v", got)
				}
			}
		})
	}
}
