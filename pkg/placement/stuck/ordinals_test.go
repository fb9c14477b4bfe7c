package stuck

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

// numbered are pods of a range: for each a letter, r for one that runs, w for one that has waited for too long, n for one that waits since
// a moment, and - for one that is not there.
func numbered(cluster string, start int32, states string) []placement.Pod {
	var out []placement.Pod
	for i, state := range states {
		pod := placement.Pod{Cluster: cluster, Ordinal: start + int32(i)}
		switch state {
		case '-':
			continue
		case 'w':
			pod.Since, pod.Says = build.Noon.Add(-time.Hour), build.SelectsNone
		case 'n':
			pod.Since, pod.Says = build.Noon, build.SelectsNone
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
		want      placement.Stuck
	}{
		"what is stuck at the end, with what was not made behind it": {states: "rw--", want: placement.Stuck{Replicas: 1, Tail: 3}},
		"all of it":                                                  {states: "w---", want: placement.Stuck{Replicas: 1, Tail: 4, Idle: true}},
		"numbers count from the first of all":                        {start: 6, states: "rrww", want: placement.Stuck{Replicas: 2, Tail: 2}},
		"nothing before what runs":                                   {states: "rwrr", want: placement.Stuck{Replicas: 1}},
		"nothing before what may yet be scheduled":                   {states: "wwnw", want: placement.Stuck{Replicas: 3, Tail: 1}},
		"what is missing before it may be made this moment":          {states: "r-ww", want: placement.Stuck{Replicas: 2, Tail: 2}},
		"nothing that has its volume here":                           {states: "rrww", kept: map[int32]string{3: "east"}, want: placement.Stuck{Replicas: 2, Tied: true}},
		"what comes behind such":                                     {states: "rwww", kept: map[int32]string{1: "east"}, want: placement.Stuck{Replicas: 3, Tail: 2, Tied: true}},
		"a volume elsewhere keeps nothing here":                      {states: "rrww", kept: map[int32]string{3: "west"}, want: placement.Stuck{Replicas: 2, Tail: 2}},
		"nor does one that the user gives up":                        {states: "rrww", kept: map[int32]string{3: "east"}, recreates: true, want: placement.Stuck{Replicas: 2, Tail: 2}},
		"what is not made for a refusal":                             {states: "rr--", refused: 2, want: placement.Stuck{Replicas: 2, Tail: 2, Refused: true}},
		"none that the refusal leaves out":                           {states: "rr--", refused: 1, want: placement.Stuck{Replicas: 1, Tail: 2, Refused: true}},
		"what is refused behind what waits is said by the scheduler": {states: "rrw-", refused: 1, want: placement.Stuck{Replicas: 2, Tail: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := placement.Workload{Ordinals: true, Kept: test.kept, Recreates: test.recreates}
			if test.want.Says = build.SelectsNone; test.want.Refused {
				test.want.Says = build.QuotaSays
			}
			if test.refused > 0 {
				w.Refused = map[string]placement.Refusal{"east": {Pods: test.refused, Since: build.Noon.Add(-time.Hour), Says: build.QuotaSays}}
			}
			got, _ := Find(&w, build.Ranges("east", int(test.start), 4), numbered("east", test.start, test.states), build.TwoMinutes, build.Noon)
			if got["east"] != test.want {
				t.Errorf("got %+v, want %+v", got["east"], test.want)
			}
		})
	}
}
