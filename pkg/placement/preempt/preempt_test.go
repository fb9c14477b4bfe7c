package preempt_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/preempt"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

func TestPreempt(t *testing.T) {
	full := func() placement.Snapshot { return build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 0)) }
	for name, test := range map[string]struct {
		clusters placement.Snapshot
		request  *build.RequestBuilder
		want     placement.Decision
		unplaced int32
		taken    map[string]int64 // cores by cluster
	}{
		"what fits needs nobody's room": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 3)),
			request:  build.Deployment(3).Urgent().Above("east", 0, 9, 9), want: build.Shares("west", 3),
		},
		"what fits nowhere goes where something of lower priority runs": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("west", 0, 3, 3), want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"the lowest priority goes first, wherever it runs": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("east", 10, 1, 9).Above("west", 5, 9, 9),
			want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"where that is not enough, the next one as well": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("east", 10, 1, 1).Above("east", 20, 1, 1).Above("west", 5, 1, 1).Above("west", 50, 1, 2),
			want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"of equals the one that stops fewest pods": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("east", 0, 9, 9).Above("west", 0, 3, 9),
			want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"and has most room without": {
			clusters: build.Snapshot(build.Cluster("east", 1), build.Cluster("west", 2)),
			request:  build.Deployment(3).Urgent().Above("east", 0, 9, 9).Above("west", 0, 9, 9), want: build.Shares("west", 3), taken: map[string]int64{"west": 1},
		},
		"nothing of its own priority, or a higher one, makes way": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("east", 100, 3, 3).Above("west", 1000, 3, 3), unplaced: 3,
		},
		"what is divided takes room for what has none": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 2)),
			request:  build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 9}).Urgent().Above("east", 0, 9, 9),
			want:     build.Shares("east", 2, "west", 2), taken: map[string]int64{"east": 2},
		},
		"even division goes by room first": {
			clusters: build.Snapshot(build.Cluster("east", 1), build.Cluster("west", 5)),
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).Urgent().Above("east", 0, 9, 9), want: build.Shares("east", 1, "west", 5),
		},
		"a pin bounds where": {
			clusters: full(), request: build.Deployment(3).Urgent().Pinned("east").Above("east", 50, 3, 3).Above("west", 0, 9, 9),
			want: build.Shares("east", 3), taken: map[string]int64{"east": 3},
		},
		"a cluster that is cordoned takes nothing all the same": {
			clusters: build.Snapshot(build.Cluster("east", 0).Cordoned(), build.Cluster("west", 0)),
			request:  build.Deployment(3).Urgent().Above("east", 0, 9, 9), unplaced: 3,
		},
		"others cannot make room within limits": {
			clusters: full(), request: build.Deployment(3).Urgent().Above("east", 0, 9, 9).Beyond("east", 2).Above("west", 50, 9, 9).Beyond("west", 3),
			want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"what has come to run stays, and so does what it took": {
			clusters: build.Snapshot(build.Cluster("east", 2), build.Cluster("west", -3)),
			request:  build.Deployment(3).Urgent().On(build.Shares("west", 3)).Above("west", 0, 3, 3), want: build.Shares("west", 3), taken: map[string]int64{"west": 3},
		},
		"a DaemonSet takes what the nodes have": {
			clusters: full(), request: func() *build.RequestBuilder {
				b := build.Deployment(1).Urgent().Above("east", 0, 9, 9)
				b.Workload.Division = placement.Everywhere
				return b
			}(), unplaced: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, taken := preempt.Run(test.clusters, test.request.Request, decide.Place(test.clusters, test.request.Request))
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

func TestNotesOfPreemptions(t *testing.T) {
	of := func(names ...string) (out []placement.Victim) {
		for _, name := range names {
			out = append(out, placement.Victim{Name: name, Replicas: 1})
		}
		return out
	}
	for name, test := range map[string]struct {
		preemptions []placement.Preemption
		want        string
	}{
		"nothing":                {},
		"what one has":           {[]placement.Preemption{{Cluster: "east", Stopped: of("Deployment shop/a")}}, "it takes room of lower priority on east (Deployment shop/a)"},
		"what nobody here has":   {[]placement.Preemption{{Cluster: "east", Stopped: of("")}}, "it takes room of lower priority on east"},
		"what many have":         {[]placement.Preemption{{Cluster: "east", Stopped: of("a", "b", "c", "d")}}, "it takes room of lower priority on east (a, b, c and others)"},
		"in two clusters":        {[]placement.Preemption{{Cluster: "east", Stopped: of("a")}, {Cluster: "west", Stopped: of("b")}}, "it takes room of lower priority on east (a) and on west (b)"},
		"what has another place": {[]placement.Preemption{{Cluster: "east", Waiting: 2, Moving: of("a")}}, "2 replicas wait for room on east until replicas of a, which has a lower priority, run elsewhere"},
		"what one has that is on its way in part": {[]placement.Preemption{{Cluster: "east", Waiting: 1, Moving: of("a", "a")}}, "1 replica waits for room on east until replicas of a, which has a lower priority, run elsewhere"},
		"what two have that move":                 {[]placement.Preemption{{Cluster: "east", Waiting: 1, Moving: of("a", "b")}}, "1 replica waits for room on east until replicas of a and b, which have a lower priority, run elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(words.Texts(preempt.Notes(test.preemptions)), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What waits for others to move gets what has room already, and the rest once there is some.
func TestAwaitsRoomThatOthersMoveOutOf(t *testing.T) {
	for name, test := range map[string]struct {
		clusters placement.Snapshot
		request  *build.RequestBuilder
		want     placement.Decision
		waiting  int32
	}{
		"all of it": {
			clusters: build.Snapshot(build.Cluster("east", 0)), request: build.Deployment(3).Urgent().Above("east", 0, 9, 9), waiting: 3,
		},
		"what has no room": {
			clusters: build.Snapshot(build.Cluster("east", 1)), request: build.Deployment(3).Urgent().Above("east", 0, 9, 9), want: build.Shares("east", 1), waiting: 2,
		},
		"what is added": {
			clusters: build.Snapshot(build.Cluster("east", 1)), request: build.Deployment(5).Urgent().On(build.Shares("east", 2)).Above("east", 0, 9, 9),
			want: build.Shares("east", 3), waiting: 2,
		},
		"a StatefulSet starts with all of its replicas": {
			clusters: build.Snapshot(build.Cluster("east", 1)), request: build.StatefulSet(3).Urgent().Above("east", 0, 9, 9), waiting: 3,
		},
		"what is added to a StatefulSet": {
			clusters: build.Snapshot(build.Cluster("east", 1)), request: build.StatefulSet(4).Urgent().On(build.Shares("east", 2)).Above("east", 0, 9, 9),
			want: build.Shares("east", 2), waiting: 2,
		},
		"of what is divided the part without room": {
			clusters: build.Snapshot(build.Cluster("east", 0), build.Cluster("west", 2)),
			request:  build.Deployment(4).DividedBy(v1alpha1.ByCapacity).Urgent().Above("east", 0, 9, 9), want: build.Shares("west", 2), waiting: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := preempt.Run(test.clusters, test.request.Request, decide.Place(test.clusters, test.request.Request))
			unplaced := got.Unplaced
			if waiting := preempt.Await(&got, test.clusters, &test.request.Request, "east"); waiting != test.waiting || got.Unplaced != unplaced+waiting {
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
		build.SelectsNone: "1 replica is unschedulable on east (" + build.SelectsNone + "), and no other cluster can take them",
	} {
		b := build.Deployment(1).On(build.Shares("east", 1)).StuckOn("east", 1)
		b.Workload.Name, b.Stuck = "batch", map[string]placement.Stuck{"east": {Replicas: 1, Says: says, Cause: placement.CauseOf(says)}}
		b.Rivals = []placement.Rival{
			{Name: "Deployment shop/web", Priority: 100, Decision: build.Shares("east", 1)}, {Name: "Deployment shop/far", Priority: 100, Decision: build.Shares("west", 1)},
			{Name: "Deployment shop/batch", Decision: build.Shares("east", 1)},
		}
		if got := decide.Place(build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 0)), b.Request).Notes; len(got) != 1 || got[0].String() != want {
			t.Errorf("notes %q, want %q", got, want)
		}
	}
}
