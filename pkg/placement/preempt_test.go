package placement

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// urgent is a request of priority 100 under a policy that lets it preempt.
func (b *requestBuilder) urgent() *requestBuilder {
	b.Workload.Priority = 100
	b.Lower = map[string]Lower{}
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.PreemptionPolicy = corev1.PreemptLowerPriority })
}

// above tells that pods of one priority, so many, request so many cores of a cluster.
func (b *requestBuilder) above(cluster string, priority int32, pods, cores int64) *requestBuilder {
	lower := b.Lower[cluster]
	lower.Levels = append(lower.Levels, Level{priority, Resources{corev1.ResourceCPU: cores * 1000, corev1.ResourcePods: pods}})
	b.Lower[cluster] = lower
	return b
}

func (b *requestBuilder) beyond(cluster string, cores int64) *requestBuilder {
	lower := b.Lower[cluster]
	lower.Beyond = Resources{corev1.ResourceCPU: cores * 1000}
	b.Lower[cluster] = lower
	return b
}

func TestPreempt(t *testing.T) {
	full := func() Snapshot { return snapshot(cluster("east", 0), cluster("west", 0)) }
	for name, test := range map[string]struct {
		clusters Snapshot
		request  *requestBuilder
		want     Decision
		unplaced int32
		taken    map[string]int64 // cores by cluster
	}{
		"what fits needs nobody's room": {
			clusters: snapshot(cluster("east", 0), cluster("west", 3)),
			request:  deployment(3).urgent().above("east", 0, 9, 9), want: shares("west", 3),
		},
		"what fits nowhere goes where something of lower priority runs": {
			clusters: full(), request: deployment(3).urgent().above("west", 0, 3, 3), want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"the lowest priority goes first, wherever it runs": {
			clusters: full(), request: deployment(3).urgent().above("east", 10, 1, 9).above("west", 5, 9, 9),
			want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"where that is not enough, the next one as well": {
			clusters: full(), request: deployment(3).urgent().above("east", 10, 1, 1).above("east", 20, 1, 1).above("west", 5, 1, 1).above("west", 50, 1, 2),
			want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"of equals the one that stops fewest pods": {
			clusters: full(), request: deployment(3).urgent().above("east", 0, 9, 9).above("west", 0, 3, 9),
			want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"and has most room without": {
			clusters: snapshot(cluster("east", 1), cluster("west", 2)),
			request:  deployment(3).urgent().above("east", 0, 9, 9).above("west", 0, 9, 9), want: shares("west", 3), taken: map[string]int64{"west": 1},
		},
		"nothing of its own priority, or a higher one, makes way": {
			clusters: full(), request: deployment(3).urgent().above("east", 100, 3, 3).above("west", 1000, 3, 3), unplaced: 3,
		},
		"what is divided takes room for what has none": {
			clusters: snapshot(cluster("east", 0), cluster("west", 2)),
			request:  deployment(4).keptTogether().near(Neighbours{"east": 9}).urgent().above("east", 0, 9, 9),
			want:     shares("east", 2, "west", 2), taken: map[string]int64{"east": 2},
		},
		"even division goes by room first": {
			clusters: snapshot(cluster("east", 1), cluster("west", 5)),
			request:  deployment(6).dividedBy(v1alpha1.ByEven).urgent().above("east", 0, 9, 9), want: shares("east", 1, "west", 5),
		},
		"a pin bounds where": {
			clusters: full(), request: deployment(3).urgent().pinned("east").above("east", 50, 3, 3).above("west", 0, 9, 9),
			want: shares("east", 3), taken: map[string]int64{"east": 3},
		},
		"a cluster that is cordoned takes nothing all the same": {
			clusters: snapshot(cluster("east", 0).cordoned(), cluster("west", 0)),
			request:  deployment(3).urgent().above("east", 0, 9, 9), unplaced: 3,
		},
		"others cannot make room within limits": {
			clusters: full(), request: deployment(3).urgent().above("east", 0, 9, 9).beyond("east", 2).above("west", 50, 9, 9).beyond("west", 3),
			want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"what has come to run stays, and so does what it took": {
			clusters: snapshot(cluster("east", 2), cluster("west", -3)),
			request:  deployment(3).urgent().on(shares("west", 3)).above("west", 0, 3, 3), want: shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"a DaemonSet takes what the nodes have": {
			clusters: full(), request: func() *requestBuilder {
				b := deployment(1).urgent().above("east", 0, 9, 9)
				b.Workload.Division = Everywhere
				return b
			}(), unplaced: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, taken := Preempt(test.clusters, test.request.Request, Place(test.clusters, test.request.Request))
			if !got.Decision.Equal(test.want) || got.Unplaced != test.unplaced {
				t.Errorf("got %s, %d unplaced, want %s, %d: %s", got.Decision, got.Unplaced, test.want, test.unplaced, got.Message())
			}
			for _, c := range test.clusters.Clusters() {
				if took := taken[c.Name][corev1.ResourceCPU]; took != test.taken[c.Name]*1000 {
					t.Errorf("takes %d of cpu on %s, want %d cores", took, c.Name, test.taken[c.Name])
				}
			}
		})
	}
}

func TestWhatPreemptsKeepsThePromises(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 20000 {
		clusters, req := randomPlacement(r)
		req.Workload.Priority, req.Lower = 100, map[string]Lower{}
		for _, c := range clusters {
			var lower Lower
			for _, priority := range []int32{0, 50, 100, 200} {
				if pods := r.Int64N(4); pods > 0 {
					lower.Levels = append(lower.Levels, Level{priority, Resources{corev1.ResourceCPU: pods * 1000, corev1.ResourcePods: pods}})
				}
			}
			if r.IntN(4) == 0 {
				lower.Beyond = Resources{corev1.ResourceCPU: r.Int64N(4) * 1000}
			}
			req.Lower[c.Name] = lower
		}
		s := NewSnapshot(clusters)
		plain := Place(s, req)
		got, taken := Preempt(s, req, plain)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\nresult %s %q", problem, clusters, req, got.Decision, got.Message())
		}
		if plain.Short(req.Current) == 0 && !got.Decision.Equal(plain.Decision) {
			t.Fatalf("%s has room, yet it goes to %s", plain.Decision, got.Decision)
		}
		if got.Unplaced > plain.Unplaced {
			t.Fatalf("%d unplaced, without preemption %d", got.Unplaced, plain.Unplaced)
		}
		settled := req
		settled.Current = got.Decision
		room := NewSnapshot(used(clusters, req, got.Decision))
		if again, still := Preempt(room, settled, Place(room, settled)); !again.Decision.Equal(got.Decision) || len(still) != len(taken) {
			t.Fatalf("preempting again moves something: from %s to %s, then %s, taken %v, then %v\nclusters %+v\nlower %+v\npolicy %+v", req.Current,
				got.Decision, again.Decision, taken, still, clusters, req.Lower, req.Policy)
		}
	}
}

func TestRemarkPreemptions(t *testing.T) {
	of := func(names ...string) (out []Victim) {
		for _, name := range names {
			out = append(out, Victim{Name: name, Replicas: 1})
		}
		return out
	}
	for name, test := range map[string]struct {
		preemptions []Preemption
		want        string
	}{
		"nothing":                 {},
		"what one has":            {[]Preemption{{Cluster: "east", Stopped: of("Deployment shop/a")}}, "it takes room of lower priority on east (Deployment shop/a)"},
		"what nobody here has":    {[]Preemption{{Cluster: "east", Stopped: of("")}}, "it takes room of lower priority on east"},
		"what many have":          {[]Preemption{{Cluster: "east", Stopped: of("a", "b", "c", "d")}}, "it takes room of lower priority on east (a, b, c and others)"},
		"in two clusters":         {[]Preemption{{Cluster: "east", Stopped: of("a")}, {Cluster: "west", Stopped: of("b")}}, "it takes room of lower priority on east (a) and on west (b)"},
		"what has another place":  {[]Preemption{{Cluster: "east", Waiting: 2, Moving: of("a")}}, "2 replicas wait for room on east until replicas of a, which has a lower priority, run elsewhere"},
		"what two have that move": {[]Preemption{{Cluster: "east", Waiting: 1, Moving: of("a", "b")}}, "1 replica waits for room on east until replicas of a and b, which have a lower priority, run elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(RemarkPreemptions(test.preemptions), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What waits for others to move gets what has room already, and the rest once there is some.
func TestAwaitsRoomThatOthersMoveOutOf(t *testing.T) {
	for name, test := range map[string]struct {
		clusters Snapshot
		request  *requestBuilder
		want     Decision
		waiting  int32
	}{
		"all of it": {
			clusters: snapshot(cluster("east", 0)), request: deployment(3).urgent().above("east", 0, 9, 9), waiting: 3,
		},
		"what has no room": {
			clusters: snapshot(cluster("east", 1)), request: deployment(3).urgent().above("east", 0, 9, 9), want: shares("east", 1), waiting: 2,
		},
		"what is added": {
			clusters: snapshot(cluster("east", 1)), request: deployment(5).urgent().on(shares("east", 2)).above("east", 0, 9, 9),
			want: shares("east", 3), waiting: 2,
		},
		"a StatefulSet starts with all of its replicas": {
			clusters: snapshot(cluster("east", 1)), request: statefulSet(3).urgent().above("east", 0, 9, 9), waiting: 3,
		},
		"what is added to a StatefulSet": {
			clusters: snapshot(cluster("east", 1)), request: statefulSet(4).urgent().on(shares("east", 2)).above("east", 0, 9, 9),
			want: shares("east", 2), waiting: 2,
		},
		"of what is divided the part without room": {
			clusters: snapshot(cluster("east", 0), cluster("west", 2)),
			request:  deployment(4).dividedBy(v1alpha1.ByCapacity).urgent().above("east", 0, 9, 9), want: shares("west", 2), waiting: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Preempt(test.clusters, test.request.Request, Place(test.clusters, test.request.Request))
			unplaced := got.Unplaced
			if waiting := got.Await(test.clusters, &test.request.Request, "east"); waiting != test.waiting || got.Unplaced != unplaced+waiting {
				t.Errorf("%d wait, %d unplaced, want %d", waiting, got.Unplaced, test.waiting)
			}
			if !got.Decision.Equal(test.want) {
				t.Errorf("got %s, want %s", got.Decision, test.want)
			}
			for _, v := range got.Verdicts {
				if share, placed := got.Decision[v.Cluster]; placed != (v.Share != nil) || placed && *v.Share != share {
					t.Errorf("the verdict about %s says %v, the decision %v", v.Cluster, v.Share, share)
				}
			}
		})
	}
}

func TestWhatIsStuckForLackOfRoomSaysWhoComesFirst(t *testing.T) {
	for says, want := range map[string]string{
		"0/3 nodes are available: 3 Insufficient cpu": "1 replica is unschedulable on east (0/3 nodes are available: 3 Insufficient cpu; of higher priority there: " +
			"Deployment shop/web), and no other cluster can take them",
		selectsNone: "1 replica is unschedulable on east (" + selectsNone + "), and no other cluster can take them",
	} {
		b := deployment(1).on(shares("east", 1)).stuck("east", 1)
		b.Workload.Name, b.Stuck = "batch", map[string]Stuck{"east": {Replicas: 1, Says: says}}
		b.Rivals = []Rival{
			{Name: "Deployment shop/web", Priority: 100, Decision: shares("east", 1)}, {Name: "Deployment shop/far", Priority: 100, Decision: shares("west", 1)},
			{Name: "Deployment shop/batch", Decision: shares("east", 1)},
		}
		if got := Place(snapshot(cluster("east", 9), cluster("west", 0)), b.Request).Notes; len(got) != 1 || got[0] != want {
			t.Errorf("notes %q, want %q", got, want)
		}
	}
}
