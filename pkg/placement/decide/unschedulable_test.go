package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestWhatIsStuckGoesElsewhere(t *testing.T) {
	both := func() placement.Snapshot { return build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 9)) }
	onlyEast := func() placement.Snapshot { return build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 0)) }
	job := func() *build.RequestBuilder {
		b := build.StatefulSet(1).On(build.Shares("east", 1)).StuckOn("east", 1)
		b.Workload.GVK.Kind, b.Workload.Fixed, b.Workload.Restarts, b.Workload.Unstarted = "Job", true, true, true
		return b
	}
	for name, test := range map[string]struct {
		clusters placement.Snapshot
		request  *build.RequestBuilder
		want     placement.Decision
		message  string
		failed   bool // of east
		stuck    int32
	}{
		"what is kept together goes to the next cluster, the rest stays": {
			clusters: both(), request: build.Deployment(5).KeptTogether().On(build.Shares("east", 5)).StuckOn("east", 2),
			want: build.Shares("east", 3, "west", 2), failed: true,
			message: `placed on east (3) and west (2); namespace "shop" is kept together on east, but 2 of 5 replicas are not there: ` +
				`it has no node for some of the pods (` + build.SelectsNone + `)`,
		},
		"what is divided by capacity": {
			clusters: both(), request: build.Deployment(6).Pinned("east", "west").On(build.Shares("east", 3, "west", 3)).StuckOn("east", 2),
			want: build.Shares("east", 1, "west", 5), failed: true, message: "placed on east (1) and west (5)",
		},
		"what is divided evenly, as far as another has room": {
			clusters: build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 1)),
			request:  build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 3, "west", 3)).StuckOn("east", 3),
			want:     build.Shares("east", 2, "west", 4), stuck: 2, failed: true,
			message: "placed on east (2) and west (4); 2 replicas are unschedulable on east (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"all of it, if none is scheduled": {
			clusters: both(), request: build.Deployment(2).Pinned("east", "west").On(build.Shares("east", 2)).StuckOn("east", 2),
			want: build.Shares("west", 2), failed: true, message: "placed on west",
		},
		"a whole workload, if another cluster has room for all": {
			clusters: both(), request: build.Deployment(5).On(build.Shares("east", 5)).StuckOn("east", 1),
			want: build.Shares("west", 5), failed: true, message: "placed on west",
		},
		"but not in parts": {
			clusters: build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 4)), request: build.Deployment(5).On(build.Shares("east", 5)).StuckOn("east", 1),
			want: build.Shares("east", 5), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"nothing, if nobody else has room": {
			clusters: onlyEast(), request: build.Deployment(3).KeptTogether().On(build.Shares("east", 3)).StuckOn("east", 3),
			want: build.Shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"what is added then waits with them": {
			clusters: onlyEast(), request: build.Deployment(5).Pinned("east", "west").On(build.Shares("east", 3)).StuckOn("east", 3),
			want: build.Shares("east", 5), stuck: 3,
		},
		"what is removed is what is stuck": {
			clusters: both(), request: build.Deployment(3).Pinned("east", "west").On(build.Shares("east", 5)).StuckOn("east", 2),
			want: build.Shares("east", 3), message: "placed on east", failed: true,
		},
		"nothing that is pinned to one cluster": {
			clusters: both(), request: build.Deployment(3).Pinned("east").On(build.Shares("east", 3)).StuckOn("east", 3),
			want: build.Shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + build.SelectsNone + "), where it is pinned",
		},
		"nothing of a copy that each cluster has": {
			clusters: both(), request: build.Deployment(2).Duplicated().On(build.Shares("east", 2, "west", 2)).StuckOn("east", 1),
			want: build.Shares("east", 2, "west", 2), stuck: 1,
		},
		"nothing that a cluster says which is not ready": {
			clusters: build.Snapshot(build.Cluster("east", 9).Unreachable(), build.Cluster("west", 9)),
			request:  build.Deployment(2).Pinned("east", "west").On(build.Shares("east", 2)).StuckOn("east", 2),
			want:     build.Shares("east", 2), stuck: 2,
		},
		"also from a cluster that is cordoned": {
			clusters: build.Snapshot(build.Cluster("east", 9).Cordoned(), build.Cluster("west", 9)),
			request:  build.Deployment(3).Pinned("east", "west").On(build.Shares("east", 3)).StuckOn("east", 2),
			want:     build.Shares("east", 1, "west", 2), failed: true,
		},
		"a Job of which nothing has run": {clusters: both(), request: job(), want: build.Shares("west", 1), failed: true},
		"no Job of which something has": {
			clusters: both(), request: func() *build.RequestBuilder { b := job(); b.Workload.Unstarted = false; return b }(),
			want: build.Shares("east", 1), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + build.SelectsNone + "), where it was started",
		},
		"no Job of which something runs": {
			clusters: both(), request: func() *build.RequestBuilder {
				b := job()
				b.Stuck = map[string]placement.Stuck{"east": {Replicas: 1, Says: build.SelectsNone}}
				return b
			}(),
			want: build.Shares("east", 1), stuck: 1,
		},
		"ordinals of which none is scheduled": {
			clusters: both(), request: func() *build.RequestBuilder {
				b := build.StatefulSet(3).On(build.Shares("east", 3))
				b.Workload.Ordinals = true
				return b.StuckOn("east", 3)
			}(),
			want: build.Shares("west", 3), failed: true,
		},
		"none whose volumes are bound": {
			clusters: both(), request: func() *build.RequestBuilder {
				b := build.StatefulSet(3).On(build.Shares("east", 3))
				b.Workload.Ordinals = true
				b.StuckOn("east", 3).Stuck["east"] = placement.Stuck{Replicas: 3, Idle: true, Tied: true, Says: build.SelectsNone}
				return b
			}(),
			want: build.Shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + build.SelectsNone + "), where their volumes are",
		},
		"and none of a whole while others serve": {
			clusters: both(), request: func() *build.RequestBuilder {
				b := build.StatefulSet(3).On(build.Shares("east", 3))
				b.Workload.Ordinals = true
				return b.StuckOn("east", 1)
			}(),
			want: build.Shares("east", 3), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + build.SelectsNone + "), and its ordinals stay where they are",
		},
		"what a cluster refuses": {
			clusters: both(), request: func() *build.RequestBuilder {
				b := build.Deployment(5).Pinned("east", "west").On(build.Shares("east", 5)).StuckOn("east", 2)
				b.Stuck["east"] = placement.Stuck{Replicas: 2, Refused: true, Says: build.QuotaSays}
				return b
			}(),
			want: build.Shares("east", 3, "west", 2), failed: true, message: "placed on east (3) and west (2)",
		},
		"what every cluster refuses stays": {
			clusters: onlyEast(), request: func() *build.RequestBuilder {
				b := build.Deployment(5).KeptTogether().On(build.Shares("east", 5)).StuckOn("east", 2)
				b.Stuck["east"] = placement.Stuck{Replicas: 2, Refused: true, Says: build.QuotaSays}
				return b
			}(),
			want: build.Shares("east", 5), stuck: 2,
			message: "placed on east; 2 replicas are refused by east (" + build.QuotaSays + "), and no other cluster can take them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(test.clusters, test.request.Request)
			if !got.Decision.Equal(test.want) || got.Stuck != test.stuck {
				t.Errorf("got %s with %d stuck, want %s with %d: %s", got.Decision, got.Stuck, test.want, test.stuck, got.Message())
			}
			if test.message != "" && got.Message() != test.message {
				t.Errorf("message\n %s, want\n %s", got.Message(), test.message)
			}
			if _, failed := got.Failures["east"]; failed != test.failed {
				t.Errorf("failures %v, want one of east: %t", got.Failures, test.failed)
			}
		})
	}
}

func TestWhereItFailedItDoesNotReturn(t *testing.T) {
	both := build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 9))
	for name, test := range map[string]struct {
		clusters placement.Snapshot
		request  *build.RequestBuilder
		want     placement.Decision
		message  string
	}{
		"an even division leaves it alone": {
			clusters: both, request: build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 1, "west", 5)).Failed("east", 1, time.Minute),
			want: build.Shares("east", 1, "west", 5),
		},
		"and comes back when the time is over": {
			clusters: both, request: build.Deployment(6).DividedBy(v1alpha1.ByEven).On(build.Shares("east", 1, "west", 5)).Failed("east", 1, 0),
			want: build.Shares("east", 3, "west", 3),
		},
		"what is added goes elsewhere": {
			clusters: both, request: build.Deployment(4).KeptTogether().Near(placement.Neighbours{"east": 9}).On(build.Shares("west", 2)).Failed("east", 1, time.Minute),
			want: build.Shares("west", 4),
		},
		"what is stuck elsewhere as well stays there": {
			clusters: both, request: build.Deployment(2).KeptTogether().On(build.Shares("west", 2)).Failed("east", 1, time.Minute).StuckOn("west", 2),
			want:    build.Shares("west", 2),
			message: "placed on west; 2 replicas are unschedulable on west (" + build.SelectsNone + "), and no other cluster can take them",
		},
		"a pin to it is obeyed": {
			clusters: both, request: build.Deployment(2).Pinned("east").On(build.Shares("west", 2)).Failed("east", 1, time.Minute), want: build.Shares("east", 2),
		},
		"it is better than none": {
			clusters: build.Snapshot(build.Cluster("east", 9), build.Cluster("west", 9).Unreachable()),
			request:  build.Deployment(2).On(nil).Failed("east", 1, time.Minute), want: build.Shares("east", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Place(test.clusters, test.request.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("got %s, want %s: %s", got.Decision, test.want, got.Message())
			}
			if test.message != "" && got.Message() != test.message {
				t.Errorf("message\n %s, want\n %s", got.Message(), test.message)
			}
		})
	}
}

// randomlyStuck adds to a request that clusters cannot schedule something, or could not lately.
func randomlyStuck(r *rand.Rand, req *placement.Request) {
	req.Now, req.Tolerated, req.Stuck = build.Noon, build.TwoMinutes, map[string]placement.Stuck{}
	req.Workload.Failures = placement.Failures{}
	for name, share := range req.Current {
		if stuck := r.Int32N(3); stuck > 0 && share.Replicas > 0 {
			req.Stuck[name] = placement.Stuck{Replicas: min(stuck, share.Replicas), Idle: stuck >= share.Replicas, Says: build.SelectsNone}
		}
	}
	for _, name := range []string{"c0", "c2", "c4"} {
		if r.IntN(4) == 0 {
			req.Workload.Failures[name] = placement.Failure{Until: build.Noon.Add(time.Duration(r.IntN(3)-1) * time.Minute), Times: 1 + r.Int32N(3)}
		}
	}
}

// settledStuck is a request after its decision was carried out: what had no other place is still stuck.
func settledStuck(req placement.Request, got placement.Result) placement.Request {
	next := req
	next.Current, next.Workload.Failures, next.Stuck = got.Decision, got.Failures, map[string]placement.Stuck{}
	for name, stuck := range req.Stuck {
		stuck.Replicas -= max(0, req.Current[name].Replicas-got.Decision[name].Replicas)
		if stuck.Replicas = min(stuck.Replicas, got.Decision[name].Replicas); stuck.Replicas > 0 {
			next.Stuck[name] = stuck
		}
	}
	return next
}

func TestStuckReplicasKeepThePromises(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 30000 {
		clusters, req := randomPlacement(r)
		randomlyStuck(r, &req)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\nresult %s %q", problem, clusters, req, got.Decision, got.Message())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		other := decide.Place(placement.NewSnapshot(clusters), req)
		if other.Message() != got.Message() || other.Annotation() != got.Annotation() {
			t.Fatalf("the order of clusters matters: %q, then %q", got.Message(), other.Message())
		}
		settled := settledStuck(req, got)
		again := decide.Place(placement.NewSnapshot(used(clusters, req, got.Decision)), settled)
		if !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s, then %s\nstuck %+v\nfailures %+v\nclusters %+v\npolicy %+v pin %+v replicas %d evict %v strategy %s failures after %v, %q, then %q", req.Current,
				got.Decision, again.Decision, req.Stuck, req.Workload.Failures, clusters, req.Policy, req.Workload.Pin, req.Workload.Replicas, req.Evict,
				got.Strategy, got.Failures, got.Message(), again.Message())
		}
	}
}
