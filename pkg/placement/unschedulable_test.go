package placement

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	quotaSays   = "exceeded quota: tight, requested: pods=1, used: pods=3, limited: pods=3"
	selectsNone = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
	twoMinutes  = 2 * time.Minute
)

// stuck is a short way to say what clusters cannot schedule.
func (b *requestBuilder) stuck(pairs ...any) *requestBuilder {
	b.Now, b.Tolerated, b.Stuck = noon, twoMinutes, map[string]Stuck{}
	for i := 0; i < len(pairs); i += 2 {
		name, replicas := pairs[i].(string), int32(pairs[i+1].(int))
		b.Stuck[name] = Stuck{Replicas: replicas, Idle: replicas == b.Current[name].Replicas, Says: selectsNone}
		if b.Workload.Numbered {
			b.Stuck[name] = Stuck{Replicas: replicas, Tail: replicas, Says: selectsNone}
		}
	}
	return b
}

// failed remembers that a cluster has failed, and that it counts as full for so long.
func (b *requestBuilder) failed(cluster string, times int32, still time.Duration) *requestBuilder {
	b.Now, b.Tolerated = noon, twoMinutes
	b.Workload.Failures = Failures{cluster: {Until: noon.Add(still), Times: times}}
	return b
}

func TestUnschedulable(t *testing.T) {
	runs := func(cluster string) Pod { return Pod{Cluster: cluster} }
	waits := func(cluster string, since time.Duration) Pod {
		return Pod{Cluster: cluster, Since: noon.Add(-since), Says: selectsNone + ". preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."}
	}
	outdated := func(cluster string) Pod {
		pod := waits(cluster, time.Hour)
		pod.Outdated = true
		return pod
	}
	for name, test := range map[string]struct {
		current  Decision
		pods     []Pod
		numbered bool
		want     map[string]Stuck
		next     time.Duration // from noon; 0 for never
	}{
		"what runs is not stuck": {current: shares("east", 1), pods: []Pod{runs("east")}},
		"what has not waited for long is looked at again": {
			current: shares("east", 2), pods: []Pod{waits("east", time.Minute), waits("east", 90*time.Second)}, next: 30 * time.Second,
		},
		"what has waited for long is stuck, and the cluster idle": {
			current: shares("east", 1), pods: []Pod{waits("east", twoMinutes)},
			want: map[string]Stuck{"east": {Replicas: 1, Idle: true, Says: selectsNone}},
		},
		"each cluster counts by itself": {
			current: shares("east", 3, "west", 2),
			pods:    []Pod{runs("east"), waits("east", time.Hour), waits("east", time.Hour), runs("west"), runs("west")},
			want:    map[string]Stuck{"east": {Replicas: 2, Says: selectsNone}},
		},
		"the surge of a rolling update stands for no replica": {
			current: shares("east", 2), pods: []Pod{runs("east"), runs("east"), waits("east", time.Hour)},
		},
		"a rolling update that takes one away first lacks that one": {
			current: shares("east", 2), pods: []Pod{runs("east"), waits("east", time.Hour), waits("east", time.Hour)},
			want: map[string]Stuck{"east": {Replicas: 1, Says: selectsNone}},
		},
		"a pod that was made just now may be scheduled": {
			current: shares("east", 2), pods: []Pod{waits("east", time.Hour), waits("east", 0)},
			want: map[string]Stuck{"east": {Replicas: 1, Says: selectsNone}}, next: twoMinutes,
		},
		"a cluster that has not made all of its pods yet is not judged": {current: shares("east", 2), pods: []Pod{waits("east", time.Hour)}},
		"pods of an earlier template that wait are about to be replaced": {
			current: shares("east", 2), pods: []Pod{outdated("east"), outdated("east"), runs("east")},
		},
		"unless what replaces them waits as well": {
			current: shares("east", 2), pods: []Pod{outdated("east"), outdated("east"), waits("east", time.Hour)},
			want: map[string]Stuck{"east": {Replicas: 1, Idle: true, Says: selectsNone}},
		},
		"a pod that waits for a claim which nobody has made waits in the right place": {
			current: shares("east", 1), pods: []Pod{{
				Cluster: "east", Since: noon.Add(-time.Hour), Says: `0/3 nodes are available: persistentvolumeclaim "data" not found. not found`,
			}},
		},
		"of ordinals the first one may be all there is": {
			current: shares("east", 3), pods: []Pod{waits("east", time.Hour)}, numbered: true,
			want: map[string]Stuck{"east": {Replicas: 1, Idle: true, Says: selectsNone, Tail: 3}},
		},
		"a cluster that is left anyway does not matter": {current: shares("west", 1), pods: []Pod{waits("east", time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, next := Unschedulable(&Workload{Numbered: test.numbered}, test.current, test.pods, twoMinutes, noon)
			if len(got)+len(test.want) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			want := time.Time{}
			if test.next > 0 {
				want = noon.Add(test.next)
			}
			if !next.Equal(want) {
				t.Errorf("next is %s, want %s", next, want)
			}
		})
	}
}

func TestTheSchedulersWordsAreThoseOfOnePod(t *testing.T) {
	says := func(text string) Pod { return Pod{Cluster: "east", Since: noon.Add(-time.Hour), Says: text} }
	for _, pods := range [][]Pod{{says("b"), says("a.")}, {says("a."), says("b")}} {
		if got, _ := Unschedulable(&Workload{}, shares("east", 2), pods, twoMinutes, noon); got["east"].Says != "a" {
			t.Errorf("says %q, want that of the first by its words", got["east"].Says)
		}
	}
}

func TestToleratesUnschedulable(t *testing.T) {
	under := func(seconds int64) *Policy {
		return &Policy{Spec: v1alpha1.PlacementPolicySpec{UnschedulableTolerationSeconds: ptr.To(seconds)}}
	}
	for name, test := range map[string]struct {
		policy *Policy
		want   time.Duration
	}{
		"no policy":                              {want: twoMinutes},
		"a policy that does not say":             {policy: &Policy{}, want: twoMinutes},
		"a policy that says so":                  {policy: under(30), want: 30 * time.Second},
		"one that tolerates nothing":             {policy: under(0)},
		"one that tolerates more than time goes": {policy: under(1 << 62), want: 10 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.policy.ToleratesUnschedulable(twoMinutes); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatIsStuckGoesElsewhere(t *testing.T) {
	both := func() Snapshot { return snapshot(cluster("east", 9), cluster("west", 9)) }
	onlyEast := func() Snapshot { return snapshot(cluster("east", 9), cluster("west", 0)) }
	job := func() *requestBuilder {
		b := statefulSet(1).on(shares("east", 1)).stuck("east", 1)
		b.Workload.GVK.Kind, b.Workload.Fixed, b.Workload.Restarts, b.Workload.Unstarted = "Job", true, true, true
		return b
	}
	for name, test := range map[string]struct {
		clusters Snapshot
		request  *requestBuilder
		want     Decision
		message  string
		failed   bool // of east
		stuck    int32
	}{
		"what is kept together goes to the next cluster, the rest stays": {
			clusters: both(), request: deployment(5).keptTogether().on(shares("east", 5)).stuck("east", 2),
			want: shares("east", 3, "west", 2), failed: true,
			message: `placed on east (3) and west (2); namespace "shop" is kept together on east, but 2 of 5 replicas are not there: ` +
				`it has no node for some of its pods (` + selectsNone + `)`,
		},
		"what is divided by capacity": {
			clusters: both(), request: deployment(6).pinned("east", "west").on(shares("east", 3, "west", 3)).stuck("east", 2),
			want: shares("east", 1, "west", 5), failed: true, message: "placed on east (1) and west (5)",
		},
		"what is divided evenly, as far as another has room": {
			clusters: snapshot(cluster("east", 9), cluster("west", 1)),
			request:  deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 3, "west", 3)).stuck("east", 3),
			want:     shares("east", 2, "west", 4), stuck: 2, failed: true,
			message: "placed on east (2) and west (4); 2 replicas are unschedulable on east (" + selectsNone + "), and no other cluster can take them",
		},
		"all of it, if none is scheduled": {
			clusters: both(), request: deployment(2).pinned("east", "west").on(shares("east", 2)).stuck("east", 2),
			want: shares("west", 2), failed: true, message: "placed on west",
		},
		"a whole workload, if another cluster has room for all": {
			clusters: both(), request: deployment(5).on(shares("east", 5)).stuck("east", 1),
			want: shares("west", 5), failed: true, message: "placed on west",
		},
		"but not in parts": {
			clusters: snapshot(cluster("east", 9), cluster("west", 4)), request: deployment(5).on(shares("east", 5)).stuck("east", 1),
			want: shares("east", 5), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + selectsNone + "), and no other cluster can take them",
		},
		"nothing, if nobody else has room": {
			clusters: onlyEast(), request: deployment(3).keptTogether().on(shares("east", 3)).stuck("east", 3),
			want: shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + selectsNone + "), and no other cluster can take them",
		},
		"what is added then waits with them": {
			clusters: onlyEast(), request: deployment(5).pinned("east", "west").on(shares("east", 3)).stuck("east", 3),
			want: shares("east", 5), stuck: 3,
		},
		"what is removed is what is stuck": {
			clusters: both(), request: deployment(3).pinned("east", "west").on(shares("east", 5)).stuck("east", 2),
			want: shares("east", 3), message: "placed on east", failed: true,
		},
		"nothing that is pinned to one cluster": {
			clusters: both(), request: deployment(3).pinned("east").on(shares("east", 3)).stuck("east", 3),
			want: shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + selectsNone + "), where it is pinned",
		},
		"nothing of a copy that each cluster has": {
			clusters: both(), request: deployment(2).duplicated().on(shares("east", 2, "west", 2)).stuck("east", 1),
			want: shares("east", 2, "west", 2), stuck: 1,
		},
		"nothing that a cluster says which is not ready": {
			clusters: snapshot(cluster("east", 9).unreachable(), cluster("west", 9)),
			request:  deployment(2).pinned("east", "west").on(shares("east", 2)).stuck("east", 2),
			want:     shares("east", 2), stuck: 2,
		},
		"also from a cluster that is cordoned": {
			clusters: snapshot(cluster("east", 9).cordoned(), cluster("west", 9)),
			request:  deployment(3).pinned("east", "west").on(shares("east", 3)).stuck("east", 2),
			want:     shares("east", 1, "west", 2), failed: true,
		},
		"a Job of which nothing has run": {clusters: both(), request: job(), want: shares("west", 1), failed: true},
		"no Job of which something has": {
			clusters: both(), request: func() *requestBuilder { b := job(); b.Workload.Unstarted = false; return b }(),
			want: shares("east", 1), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + selectsNone + "), where it was started",
		},
		"no Job of which something runs": {
			clusters: both(), request: func() *requestBuilder {
				b := job()
				b.Stuck = map[string]Stuck{"east": {Replicas: 1, Says: selectsNone}}
				return b
			}(),
			want: shares("east", 1), stuck: 1,
		},
		"ordinals of which none is scheduled": {
			clusters: both(), request: func() *requestBuilder {
				b := statefulSet(3).on(shares("east", 3))
				b.Workload.Numbered = true
				return b.stuck("east", 3)
			}(),
			want: shares("west", 3), failed: true,
		},
		"none whose volumes are bound": {
			clusters: both(), request: func() *requestBuilder {
				b := statefulSet(3).on(shares("east", 3))
				b.Workload.Numbered = true
				b.stuck("east", 3).Stuck["east"] = Stuck{Replicas: 3, Idle: true, Tied: true, Says: selectsNone}
				return b
			}(),
			want: shares("east", 3), stuck: 3,
			message: "placed on east; 3 replicas are unschedulable on east (" + selectsNone + "), where their volumes are",
		},
		"and none of a whole while others serve": {
			clusters: both(), request: func() *requestBuilder {
				b := statefulSet(3).on(shares("east", 3))
				b.Workload.Numbered = true
				return b.stuck("east", 1)
			}(),
			want: shares("east", 3), stuck: 1,
			message: "placed on east; 1 replica is unschedulable on east (" + selectsNone + "), and its ordinals stay where they are",
		},
		"what a cluster refuses": {
			clusters: both(), request: func() *requestBuilder {
				b := deployment(5).pinned("east", "west").on(shares("east", 5)).stuck("east", 2)
				b.Stuck["east"] = Stuck{Replicas: 2, Refused: true, Says: quotaSays}
				return b
			}(),
			want: shares("east", 3, "west", 2), failed: true, message: "placed on east (3) and west (2)",
		},
		"what every cluster refuses stays": {
			clusters: onlyEast(), request: func() *requestBuilder {
				b := deployment(5).keptTogether().on(shares("east", 5)).stuck("east", 2)
				b.Stuck["east"] = Stuck{Replicas: 2, Refused: true, Says: quotaSays}
				return b
			}(),
			want: shares("east", 5), stuck: 2,
			message: "placed on east; 2 replicas are refused by east (" + quotaSays + "), and no other cluster can take them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(test.clusters, test.request.Request)
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
	both := snapshot(cluster("east", 9), cluster("west", 9))
	for name, test := range map[string]struct {
		clusters Snapshot
		request  *requestBuilder
		want     Decision
		message  string
	}{
		"an even division leaves it alone": {
			clusters: both, request: deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 1, "west", 5)).failed("east", 1, time.Minute),
			want: shares("east", 1, "west", 5),
		},
		"and comes back when the time is over": {
			clusters: both, request: deployment(6).dividedBy(v1alpha1.ByEven).on(shares("east", 1, "west", 5)).failed("east", 1, 0),
			want: shares("east", 3, "west", 3),
		},
		"what is added goes elsewhere": {
			clusters: both, request: deployment(4).keptTogether().near(Neighbours{"east": 9}).on(shares("west", 2)).failed("east", 1, time.Minute),
			want: shares("west", 4),
		},
		"what is stuck elsewhere as well stays there": {
			clusters: both, request: deployment(2).keptTogether().on(shares("west", 2)).failed("east", 1, time.Minute).stuck("west", 2),
			want:    shares("west", 2),
			message: "placed on west; 2 replicas are unschedulable on west (" + selectsNone + "), and no other cluster can take them",
		},
		"a pin to it is obeyed": {
			clusters: both, request: deployment(2).pinned("east").on(shares("west", 2)).failed("east", 1, time.Minute), want: shares("east", 2),
		},
		"it is better than none": {
			clusters: snapshot(cluster("east", 9), cluster("west", 9).unreachable()),
			request:  deployment(2).on(nil).failed("east", 1, time.Minute), want: shares("east", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(test.clusters, test.request.Request)
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
func randomlyStuck(r *rand.Rand, req *Request) {
	req.Now, req.Tolerated, req.Stuck = noon, twoMinutes, map[string]Stuck{}
	req.Workload.Failures = Failures{}
	for name, share := range req.Current {
		if stuck := r.Int32N(3); stuck > 0 && share.Replicas > 0 {
			req.Stuck[name] = Stuck{Replicas: min(stuck, share.Replicas), Idle: stuck >= share.Replicas, Says: selectsNone}
		}
	}
	for _, name := range []string{"c0", "c2", "c4"} {
		if r.IntN(4) == 0 {
			req.Workload.Failures[name] = Failure{Until: noon.Add(time.Duration(r.IntN(3)-1) * time.Minute), Times: 1 + r.Int32N(3)}
		}
	}
}

// settledStuck is a request after its decision was carried out: what had no other place is still stuck.
func settledStuck(req Request, got Result) Request {
	next := req
	next.Current, next.Workload.Failures, next.Stuck = got.Decision, got.Failures, map[string]Stuck{}
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
		got := Place(NewSnapshot(clusters), req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\nresult %s %q", problem, clusters, req, got.Decision, got.Message())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		other := Place(NewSnapshot(clusters), req)
		if other.Message() != got.Message() || other.Annotation() != got.Annotation() {
			t.Fatalf("the order of clusters matters: %q, then %q", got.Message(), other.Message())
		}
		settled := settledStuck(req, got)
		again := Place(NewSnapshot(used(clusters, req, got.Decision)), settled)
		if !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s, then %s\nstuck %+v\nfailures %+v\nclusters %+v\npolicy %+v pin %+v replicas %d evict %v strategy %s failures after %v, %q, then %q", req.Current,
				got.Decision, again.Decision, req.Stuck, req.Workload.Failures, clusters, req.Policy, req.Workload.Pin, req.Workload.Replicas, req.Evict,
				got.Strategy, got.Failures, got.Message(), again.Message())
		}
	}
}
