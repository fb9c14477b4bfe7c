package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// numbered are pods of a range: for each a letter, r for one that runs, w for one that has waited for too long, n for one that waits since
// a moment, and - for one that is not there.
func numbered(cluster string, start int32, states string) []Pod {
	var out []Pod
	for i, state := range states {
		pod := Pod{Cluster: cluster, Number: start + int32(i)}
		switch state {
		case '-':
			continue
		case 'w':
			pod.Since, pod.Says = noon.Add(-time.Hour), selectsNone
		case 'n':
			pod.Since, pod.Says = noon, selectsNone
		}
		out = append(out, pod)
	}
	return out
}

func TestTheTailOfARangeMayGo(t *testing.T) {
	for name, test := range map[string]struct {
		start     int32
		states    string
		kept      map[int32]string
		recreates bool
		refused   int32 // pods
		want      Stuck
	}{
		"what is stuck at the end, with what was not made behind it": {states: "rw--", want: Stuck{Replicas: 1, Tail: 3}},
		"all of it":                                                  {states: "w---", want: Stuck{Replicas: 1, Tail: 4, Idle: true}},
		"numbers count from the first of all":                        {start: 6, states: "rrww", want: Stuck{Replicas: 2, Tail: 2}},
		"nothing before what runs":                                   {states: "rwrr", want: Stuck{Replicas: 1}},
		"nothing before what may yet be scheduled":                   {states: "wwnw", want: Stuck{Replicas: 3, Tail: 1}},
		"what is missing before it may be made this moment":          {states: "r-ww", want: Stuck{Replicas: 2, Tail: 2}},
		"nothing that has its volume here":                           {states: "rrww", kept: map[int32]string{3: "east"}, want: Stuck{Replicas: 2, Tied: true}},
		"what comes behind such":                                     {states: "rwww", kept: map[int32]string{1: "east"}, want: Stuck{Replicas: 3, Tail: 2, Tied: true}},
		"a volume elsewhere keeps nothing here":                      {states: "rrww", kept: map[int32]string{3: "west"}, want: Stuck{Replicas: 2, Tail: 2}},
		"nor does one that the user gives up":                        {states: "rrww", kept: map[int32]string{3: "east"}, recreates: true, want: Stuck{Replicas: 2, Tail: 2}},
		"what is not made for a refusal":                             {states: "rr--", refused: 2, want: Stuck{Replicas: 2, Tail: 2, Refused: true}},
		"none that the refusal leaves out":                           {states: "rr--", refused: 1, want: Stuck{Replicas: 1, Tail: 2, Refused: true}},
		"what is refused behind what waits is said by the scheduler": {states: "rrw-", refused: 1, want: Stuck{Replicas: 2, Tail: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workload{Numbered: true, Kept: test.kept, Recreates: test.recreates}
			if test.want.Says = selectsNone; test.want.Refused {
				test.want.Says = quotaSays
			}
			if test.refused > 0 {
				w.Refused = map[string]Refusal{"east": {Pods: test.refused, Since: noon.Add(-time.Hour), Says: quotaSays}}
			}
			got, _ := Unschedulable(&w, ranges("east", int(test.start), 4), numbered("east", test.start, test.states), twoMinutes, noon)
			if got["east"] != test.want {
				t.Errorf("got %+v, want %+v", got["east"], test.want)
			}
		})
	}
}

func TestWhatIsRefusedIsStuck(t *testing.T) {
	runs, waits := Pod{Cluster: "east"}, Pod{Cluster: "east", Since: noon.Add(-time.Hour), Says: selectsNone}
	for name, test := range map[string]struct {
		pods    []Pod
		refused int32
		since   time.Duration
		want    Stuck
		next    time.Duration // from noon
	}{
		"after the toleration":           {pods: []Pod{runs}, refused: 3, since: time.Hour, want: Stuck{Replicas: 3, Refused: true, Says: quotaSays}},
		"not before":                     {pods: []Pod{runs}, refused: 3, since: time.Minute, next: time.Minute},
		"the cluster may run nothing":    {refused: 4, since: time.Hour, want: Stuck{Replicas: 4, Refused: true, Idle: true, Says: quotaSays}},
		"no more than are missing":       {pods: []Pod{runs, runs, runs}, refused: 3, since: time.Hour, want: Stuck{Replicas: 1, Refused: true, Says: quotaSays}},
		"nothing if none is missing":     {pods: []Pod{runs, runs, runs, runs}, refused: 1, since: time.Hour},
		"beside what is not scheduled":   {pods: []Pod{runs, waits}, refused: 2, since: time.Hour, want: Stuck{Replicas: 3, Says: selectsNone}},
		"fewer than are missing for now": {pods: []Pod{runs}, refused: 2, since: time.Hour, want: Stuck{Replicas: 2, Refused: true, Says: quotaSays}},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workload{Refused: map[string]Refusal{
				"east": {Pods: test.refused, Since: noon.Add(-test.since), Says: quotaSays}, "west": {Pods: 9, Says: "left anyway"},
			}}
			got, next := Unschedulable(&w, shares("east", 4), test.pods, twoMinutes, noon)
			if got["east"] != test.want || len(got) > 1 {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if want := noon.Add(test.next); test.next > 0 && !next.Equal(want) || test.next == 0 && !next.IsZero() {
				t.Errorf("next is %s, want %s", next, want)
			}
		})
	}
}

func TestTheEndOfARangeGoesElsewhere(t *testing.T) {
	three := func() []*clusterBuilder {
		return []*clusterBuilder{cluster("east", 9), cluster("north", 9), cluster("west", 9)}
	}
	even := func(replicas int32) *requestBuilder { return database(replicas).dividedBy(v1alpha1.ByEven).byName() }
	for name, test := range map[string]struct {
		clusters []*clusterBuilder
		request  *requestBuilder
		want     Decision
		message  string
		stuck    int32
	}{
		"to a cluster without a range": {
			clusters: three(), request: even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("east", 2),
			want: ranges("east", 0, 1, "north", 1, 2, "west", 3, 3),
		},
		"the last one too": {
			clusters: three(), request: even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("west", 1),
			want: ranges("east", 0, 3, "north", 5, 1, "west", 3, 2),
		},
		"to the neighbour behind, if there is no other": {
			clusters: three()[1:], request: even(6).on(ranges("north", 0, 3, "west", 3, 3)).stuck("north", 2),
			want: ranges("north", 0, 1, "west", 1, 5),
		},
		"as far as there is room": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 1)}, request: even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("east", 2),
			want: ranges("east", 0, 2, "west", 2, 4), stuck: 1,
			message: "placed on east (2) and west (4); 1 replica is unschedulable on east (" + selectsNone + "), and no other cluster can take them",
		},
		"nowhere past a neighbour": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 9)}, request: even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("west", 2),
			want: ranges("east", 0, 3, "west", 3, 3), stuck: 2,
			message: "placed on east (3) and west (3); 2 replicas are unschedulable on west (" + selectsNone + "), and no other cluster can take them",
		},
		"a whole range": {
			clusters: three(), request: even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("east", 3),
			want: ranges("north", 0, 3, "west", 3, 3),
		},
		"not what volumes keep": {
			clusters: three(), request: func() *requestBuilder {
				b := even(6).on(ranges("east", 0, 3, "west", 3, 3)).stuck("east", 2)
				b.Stuck["east"] = Stuck{Replicas: 2, Tied: true, Says: selectsNone}
				return b
			}(),
			want: ranges("east", 0, 3, "west", 3, 3), stuck: 2,
			message: "placed on east (3) and west (3); 2 replicas are unschedulable on east (" + selectsNone + "), where their volumes are",
		},
		"what was not made goes before what is stuck": {
			clusters: []*clusterBuilder{cluster("east", 9), cluster("west", 2)}, request: func() *requestBuilder {
				b := even(6).on(ranges("east", 0, 4, "west", 4, 2)).stuck("east", 3)
				b.Stuck["east"] = Stuck{Replicas: 1, Tail: 3, Says: selectsNone}
				return b
			}(),
			want: ranges("east", 0, 2, "west", 2, 4), stuck: 1,
		},
		"what is added goes there as well": {
			clusters: three(), request: even(8).on(ranges("east", 0, 3, "west", 3, 3)).stuck("west", 2),
			want: ranges("east", 0, 3, "north", 4, 4, "west", 3, 1),
		},
		"what is taken away is what is stuck": {
			clusters: three(), request: even(4).on(ranges("east", 0, 3, "west", 3, 3)).stuck("west", 2),
			want: ranges("east", 0, 3, "west", 3, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(snapshot(test.clusters...), test.request.Request)
			if !got.Decision.Equal(test.want) || got.Stuck != test.stuck {
				t.Errorf("got %s with %d stuck, want %s with %d: %s", got.Decision, got.Stuck, test.want, test.stuck, got.Message())
			}
			if test.message != "" && got.Message() != test.message {
				t.Errorf("message\n %s, want\n %s", got.Message(), test.message)
			}
		})
	}
}

// randomTails adds to a request for numbered replicas which ends of ranges may go.
func randomTails(r *rand.Rand, req *Request) {
	randomlyStuck(r, req)
	for name, share := range req.Current {
		if r.IntN(2) == 0 {
			stuck := 1 + r.Int32N(share.Replicas)
			req.Stuck[name] = Stuck{Replicas: stuck, Tail: min(share.Replicas, r.Int32N(stuck+2)), Says: selectsNone}
		}
	}
}

func TestStuckRangesKeepThePromises(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	moved := 0
	for range 30000 {
		clusters, req := randomNumbered(r)
		if !joinedAll(clusters, req.Current) {
			continue // a cluster that is gone is left first, and then it is asked anew what may go
		}
		randomTails(r, &req)
		got := Place(NewSnapshot(clusters), req)
		if problem := judgeTails(req, got); problem != "" {
			t.Fatalf("%s\nclusters %+v\nrequest %+v\npolicy %+v\nresult %s %q", problem, clusters, req, req.Policy, got.Decision, got.Message())
		}
		moved += int(got.Moved)
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		if other := Place(NewSnapshot(clusters), req); other.Message() != got.Message() || other.Annotation() != got.Annotation() {
			t.Fatalf("the order of clusters matters: %s, then %s", got.Decision, other.Decision)
		}
		if req.Current.Total() > int64(req.Workload.Replicas) {
			continue // what is removed makes room
		}
		settled := settledStuck(req, got)
		for name, stuck := range settled.Stuck {
			stuck.Tail = max(0, req.Stuck[name].Tail-max(0, req.Current[name].Replicas-got.Decision[name].Replicas))
			settled.Stuck[name] = stuck
		}
		if again := Place(NewSnapshot(used(clusters, req, got.Decision)), settled); !again.Decision.Equal(got.Decision) {
			t.Fatalf("placing again moves something: from %s to %s, then %s\nstuck %+v, then %+v\nclusters %+v\nrequest %+v\npolicy %+v",
				req.Current, got.Decision, again.Decision, req.Stuck, settled.Stuck, clusters, req, req.Policy)
		}
	}
	if moved == 0 {
		t.Error("nothing moved at all")
	}
}

// joinedAll tells whether all clusters of a decision have joined.
func joinedAll(clusters []Cluster, d Decision) bool {
	for name := range d {
		if !slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Name == name }) {
			return false
		}
	}
	return true
}

// judgeTails finds fault with ranges of which ends may go.
func judgeTails(req Request, got Result) string {
	after, twice := owners(got.Decision)
	if twice {
		return "a number is given twice"
	}
	if int32(len(after))+got.Unplaced != req.Workload.Replicas {
		return "the sum is wrong"
	}
	before, _ := owners(req.Current)
	for number := range req.Workload.Replicas {
		home := before[number]
		if home == "" || after[number] == home {
			continue
		}
		v := verdictOn(got, home)
		share := req.Current[home]
		inTail := number >= share.Start+share.Replicas-req.Stuck[home].Tail
		free, joined := inTail, v.Cluster != ""
		for _, reason := range v.Reasons {
			switch reason.Code {
			case ReasonNotJoined:
				joined = false
			case ReasonNotPinned, ReasonNotSelected, ReasonNoWeight, ReasonEvicted:
				free = true
			}
		}
		switch {
		case joined && !free:
			return fmt.Sprintf("number %d moves from %s to %q", number, home, after[number])
		case joined && after[number] == "":
			return fmt.Sprintf("number %d leaves %s for nowhere", number, home)
		}
	}
	return ""
}

func TestParseRefusals(t *testing.T) {
	for text, want := range map[string]map[string]Refusal{
		"": nil, `{"east":{"replicas":3,"problem":"refused"}}`: nil, `{"refused":`: nil, `{"east":{"replicas":3}}`: nil,
		`{"east":{"replicas":3,"refused":{"pods":2,"since":"2026-05-01T12:00:00Z","says":"no"}},"west":{"ready":1}}`: {
			"east": {Pods: 2, Since: noon, Says: "no"},
		},
	} {
		if got := ParseRefusals(text); !reflect.DeepEqual(got, want) {
			t.Errorf("of %s got %+v, want %+v", text, got, want)
		}
	}
}

func TestRefusedByCluster(t *testing.T) {
	for name, test := range map[string]struct {
		message, want, quota string
		own                  bool
	}{
		"a quota": {
			`pods "web-5d4-x" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2`,
			"exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2", "tight", true,
		},
		"a quota that asks for requests": {
			`Error creating: pods "web-x" is forbidden: failed quota: strict: must specify cpu for: app`, "failed quota: strict: must specify cpu for: app", "strict", true,
		},
		"a claim of a StatefulSet": {
			`create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0`,
			"exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0", "q", true,
		},
		"a webhook": {
			`Error creating: admission webhook "policy.example.com" denied the request: no`, `admission webhook "policy.example.com" denied the request: no`, "", true,
		},
		"a webhook that cannot be called": {
			`Error creating: Internal error occurred: failed calling webhook "x": refused`, `failed calling webhook "x": refused`, "", true,
		},
		"an invalid pod is one everywhere": {`Pod "web-x" is invalid: spec.containers: Required value`, `Pod "web-x" is invalid: spec.containers: Required value`, "", false},
		"what lacks above lacks everywhere": {
			`pods "web-" is forbidden: error looking up service account shop/web: serviceaccount "web" not found`,
			`error looking up service account shop/web: serviceaccount "web" not found`, "", false,
		},
		"nothing is said": {},
	} {
		t.Run(name, func(t *testing.T) {
			says, own := RefusedByCluster(test.message)
			if says != test.want || own != test.own || RefusingQuota(says) != test.quota {
				t.Errorf("got %q, %t, quota %q, want %q, %t, %q", says, own, RefusingQuota(says), test.want, test.own, test.quota)
			}
		})
	}
}
