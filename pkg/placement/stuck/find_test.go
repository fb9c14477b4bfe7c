package stuck

import (
	"reflect"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestWhatIsRefusedIsStuck(t *testing.T) {
	runs, waits := placement.Pod{Cluster: "east"}, placement.Pod{Cluster: "east", Since: build.Noon.Add(-time.Hour), Says: build.SelectsNone}
	for name, test := range map[string]struct {
		pods    []placement.Pod
		refused int32
		since   time.Duration
		want    placement.Stuck
		next    time.Duration // from noon
	}{
		"after the toleration":           {pods: []placement.Pod{runs}, refused: 3, since: time.Hour, want: placement.Stuck{Replicas: 3, Refused: true, Says: build.QuotaSays}},
		"not before":                     {pods: []placement.Pod{runs}, refused: 3, since: time.Minute, next: time.Minute},
		"the cluster may run nothing":    {refused: 4, since: time.Hour, want: placement.Stuck{Replicas: 4, Refused: true, Idle: true, Says: build.QuotaSays}},
		"no more than are missing":       {pods: []placement.Pod{runs, runs, runs}, refused: 3, since: time.Hour, want: placement.Stuck{Replicas: 1, Refused: true, Says: build.QuotaSays}},
		"nothing if none is missing":     {pods: []placement.Pod{runs, runs, runs, runs}, refused: 1, since: time.Hour},
		"beside what is not scheduled":   {pods: []placement.Pod{runs, waits}, refused: 2, since: time.Hour, want: placement.Stuck{Replicas: 3, Says: build.SelectsNone}},
		"fewer than are missing for now": {pods: []placement.Pod{runs}, refused: 2, since: time.Hour, want: placement.Stuck{Replicas: 2, Refused: true, Says: build.QuotaSays}},
	} {
		t.Run(name, func(t *testing.T) {
			w := placement.Workload{Refused: map[string]placement.Refusal{
				"east": {Pods: test.refused, Since: build.Noon.Add(-test.since), Says: build.QuotaSays}, "west": {Pods: 9, Says: "left anyway"},
			}}
			got, next := Find(&w, build.Shares("east", 4), test.pods, build.TwoMinutes, build.Noon)
			if got["east"] != test.want || len(got) > 1 {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if want := build.Noon.Add(test.next); test.next > 0 && !next.Equal(want) || test.next == 0 && !next.IsZero() {
				t.Errorf("next is %s, want %s", next, want)
			}
		})
	}
}

func TestUnschedulable(t *testing.T) {
	runs := func(cluster string) placement.Pod { return placement.Pod{Cluster: cluster} }
	waits := func(cluster string, since time.Duration) placement.Pod {
		return placement.Pod{Cluster: cluster, Since: build.Noon.Add(-since), Says: build.SelectsNone + ". preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."}
	}
	outdated := func(cluster string) placement.Pod {
		pod := waits(cluster, time.Hour)
		pod.Outdated = true
		return pod
	}
	for name, test := range map[string]struct {
		current  placement.Decision
		pods     []placement.Pod
		numbered bool
		want     map[string]placement.Stuck
		next     time.Duration // from noon; 0 for never
	}{
		"what runs is not stuck": {current: build.Shares("east", 1), pods: []placement.Pod{runs("east")}},
		"what has not waited for long is looked at again": {
			current: build.Shares("east", 2), pods: []placement.Pod{waits("east", time.Minute), waits("east", 90*time.Second)}, next: 30 * time.Second,
		},
		"what has waited for long is stuck, and the cluster idle": {
			current: build.Shares("east", 1), pods: []placement.Pod{waits("east", build.TwoMinutes)},
			want: map[string]placement.Stuck{"east": {Replicas: 1, Idle: true, Says: build.SelectsNone}},
		},
		"each cluster counts by itself": {
			current: build.Shares("east", 3, "west", 2),
			pods:    []placement.Pod{runs("east"), waits("east", time.Hour), waits("east", time.Hour), runs("west"), runs("west")},
			want:    map[string]placement.Stuck{"east": {Replicas: 2, Says: build.SelectsNone}},
		},
		"the surge of a rolling update stands for no replica": {
			current: build.Shares("east", 2), pods: []placement.Pod{runs("east"), runs("east"), waits("east", time.Hour)},
		},
		"a rolling update that takes one away first lacks that one": {
			current: build.Shares("east", 2), pods: []placement.Pod{runs("east"), waits("east", time.Hour), waits("east", time.Hour)},
			want: map[string]placement.Stuck{"east": {Replicas: 1, Says: build.SelectsNone}},
		},
		"a pod that was made just now may be scheduled": {
			current: build.Shares("east", 2), pods: []placement.Pod{waits("east", time.Hour), waits("east", 0)},
			want: map[string]placement.Stuck{"east": {Replicas: 1, Says: build.SelectsNone}}, next: build.TwoMinutes,
		},
		"a cluster that has not made all of its pods yet is not judged": {current: build.Shares("east", 2), pods: []placement.Pod{waits("east", time.Hour)}},
		"pods of an earlier template that wait are about to be replaced": {
			current: build.Shares("east", 2), pods: []placement.Pod{outdated("east"), outdated("east"), runs("east")},
		},
		"unless what replaces them waits as well": {
			current: build.Shares("east", 2), pods: []placement.Pod{outdated("east"), outdated("east"), waits("east", time.Hour)},
			want: map[string]placement.Stuck{"east": {Replicas: 1, Idle: true, Says: build.SelectsNone}},
		},
		"a pod that waits for a claim which nobody has made waits in the right place": {
			current: build.Shares("east", 1), pods: []placement.Pod{{
				Cluster: "east", Since: build.Noon.Add(-time.Hour), Says: `0/3 nodes are available: persistentvolumeclaim "data" not found. not found`, Cause: placement.CauseNoClaim,
			}},
		},
		"of ordinals the first one may be all there is": {
			current: build.Shares("east", 3), pods: []placement.Pod{waits("east", time.Hour)}, numbered: true,
			want: map[string]placement.Stuck{"east": {Replicas: 1, Idle: true, Says: build.SelectsNone, Tail: 3}},
		},
		"a cluster that is left anyway does not matter": {current: build.Shares("west", 1), pods: []placement.Pod{waits("east", time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, next := Find(&placement.Workload{Ordinals: test.numbered}, test.current, test.pods, build.TwoMinutes, build.Noon)
			if len(got)+len(test.want) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			want := time.Time{}
			if test.next > 0 {
				want = build.Noon.Add(test.next)
			}
			if !next.Equal(want) {
				t.Errorf("next is %s, want %s", next, want)
			}
		})
	}
}

func TestTheSchedulersWordsAreThoseOfOnePod(t *testing.T) {
	says := func(text string) placement.Pod {
		return placement.Pod{Cluster: "east", Since: build.Noon.Add(-time.Hour), Says: text}
	}
	for _, pods := range [][]placement.Pod{{says("b"), says("a.")}, {says("a."), says("b")}} {
		if got, _ := Find(&placement.Workload{}, build.Shares("east", 2), pods, build.TwoMinutes, build.Noon); got["east"].Says != "a" {
			t.Errorf("says %q, want that of the first by its words", got["east"].Says)
		}
	}
}
