package preempt

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

// cores is so many of them, with a pod.
func cores(n int64) placement.Resources {
	return placement.Resources{corev1.ResourceCPU: n * 1000, corev1.ResourcePods: 1}
}

// rivalOn runs so many replicas of so many cores each on east.
func rivalOn(name string, priority int32, replicas int, each int64) placement.Rival {
	return placement.Rival{Name: name, Priority: priority, Requests: cores(each), Decision: build.Shares("east", replicas)}
}

func bound(r placement.Rival) placement.Rival { r.Bound = true; return r }

func running(r placement.Rival, replicas int32) placement.Rival {
	r.Running = map[string]int32{"east": replicas}
	return r
}

func TestVictims(t *testing.T) {
	for name, test := range map[string]struct {
		lacks   int64 // cores
		rivals  []placement.Rival
		levels  []placement.Level
		want    []placement.Victim
		leaving []placement.Victim
	}{
		"the lowest priority goes first": {
			lacks: 2, rivals: []placement.Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)}, want: []placement.Victim{{Name: "low", Priority: 0, Replicas: 2}},
		},
		"where that is not enough the next one as well": {
			lacks: 3, rivals: []placement.Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)}, want: []placement.Victim{{Name: "low", Priority: 0, Replicas: 2}, {Name: "middle", Priority: 5, Replicas: 1}},
		},
		"what would go in vain is spared": {
			lacks: 3, rivals: []placement.Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 1, 3)}, want: []placement.Victim{{Name: "middle", Priority: 5, Replicas: 1}},
		},
		"only as many replicas as are needed": {lacks: 3, rivals: []placement.Rival{rivalOn("low", 0, 9, 2)}, want: []placement.Victim{{Name: "low", Priority: 0, Replicas: 2}}},
		"nothing of the same or a higher priority": {
			lacks: 3, rivals: []placement.Rival{rivalOn("low", 0, 1, 1), rivalOn("same", 100, 9, 1), rivalOn("higher", 200, 9, 1)}, want: []placement.Victim{{Name: "low", Priority: 0, Replicas: 1}},
		},
		"fewest have to go": {
			lacks: 4, rivals: []placement.Rival{rivalOn("small", 0, 4, 1), rivalOn("large", 0, 2, 4)}, want: []placement.Victim{{Name: "large", Priority: 0, Replicas: 1}},
		},
		"what can run elsewhere goes before what cannot": {
			lacks: 2, rivals: []placement.Rival{bound(rivalOn("a", 0, 2, 1)), rivalOn("b", 0, 2, 1)}, want: []placement.Victim{{Name: "b", Priority: 0, Replicas: 2}},
		},
		"what has more replicas loses one": {
			lacks: 1, rivals: []placement.Rival{rivalOn("many", 0, 3, 1), rivalOn("single", 0, 1, 1)}, want: []placement.Victim{{Name: "many", Priority: 0, Replicas: 1}},
		},
		"but not at the price of a higher priority": {
			lacks: 2, rivals: []placement.Rival{bound(rivalOn("a", 0, 2, 1)), rivalOn("b", 5, 2, 1)}, want: []placement.Victim{{Name: "a", Priority: 0, Replicas: 2}},
		},
		"pods that nobody here has placed count as well": {
			lacks: 2, rivals: []placement.Rival{rivalOn("middle", 5, 2, 1)}, levels: []placement.Level{{Priority: 0, Requests: placement.Resources{corev1.ResourceCPU: 4000, corev1.ResourcePods: 2}}},
			want: []placement.Victim{{Name: "", Priority: 0, Replicas: 1}},
		},
		"those of a workload are not counted twice": {
			lacks: 3, rivals: []placement.Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)},
			levels: []placement.Level{{Priority: 0, Requests: placement.Resources{corev1.ResourceCPU: 2000, corev1.ResourcePods: 2}}, {Priority: 5, Requests: placement.Resources{corev1.ResourceCPU: 2000, corev1.ResourcePods: 2}}},
			want:   []placement.Victim{{Name: "low", Priority: 0, Replicas: 2}, {Name: "middle", Priority: 5, Replicas: 1}},
		},
		"room that becomes free anyway is not taken from others": {
			lacks: 2, rivals: []placement.Rival{running(rivalOn("goes", 0, 1, 1), 3), rivalOn("low", 0, 2, 1)}, leaving: []placement.Victim{{Name: "goes", Priority: 0, Replicas: 2}},
		},
		"and what is lacking beyond it is": {
			lacks: 3, rivals: []placement.Rival{running(rivalOn("goes", 5, 0, 1), 2), rivalOn("low", 0, 2, 1)}, leaving: []placement.Victim{{Name: "goes", Priority: 5, Replicas: 2}},
			want: []placement.Victim{{Name: "low", Priority: 0, Replicas: 1}},
		},
		"nothing lacks": {lacks: 0, rivals: []placement.Rival{rivalOn("low", 0, 2, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Contest{Cluster: "east", Room: placement.Resources{corev1.ResourceCPU: test.lacks * 1000}, Priority: 100, Rivals: test.rivals, Levels: test.levels}
			if got := c.Victims(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("victims %+v, want %+v", got, test.want)
			}
			if got := c.Leaving(); !reflect.DeepEqual(got, test.leaving) {
				t.Errorf("leaving %+v, want %+v", got, test.leaving)
			}
		})
	}
}

func TestVictimsAreAsFewAndAsLowAsCanBe(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 20000 {
		c := Contest{Cluster: "east", Priority: 100, Room: placement.Resources{corev1.ResourceCPU: r.Int64N(12) * 1000}}
		for _, name := range []string{"a", "b", "c", "d", "e"}[:r.IntN(6)] {
			rival := rivalOn(name, r.Int32N(6)*25, r.IntN(4), 1+r.Int64N(4))
			rival.Bound = r.IntN(3) == 0
			c.Rivals = append(c.Rivals, rival)
		}
		victims := c.Victims()
		byName, highest, total := map[string]placement.Rival{}, int32(-1), placement.Resources{}
		for _, rival := range c.Rivals {
			byName[rival.Name] = rival
		}
		for _, v := range victims {
			rival := byName[v.Name]
			if v.Priority >= c.Priority || v.Replicas > rival.Decision["east"].Replicas || v.Replicas <= 0 {
				t.Fatalf("%+v may not be a victim of %+v", v, c)
			}
			highest = max(highest, v.Priority)
			total.Add(rival.Requests, int64(v.Replicas))
		}
		could, below := placement.Resources{}, placement.Resources{}
		for _, rival := range c.Rivals {
			if rival.Priority < c.Priority {
				could.Add(rival.Requests, int64(rival.Decision["east"].Replicas))
			}
			if rival.Priority < highest {
				below.Add(rival.Requests, int64(rival.Decision["east"].Replicas))
			}
		}
		lacks := min(c.Room[corev1.ResourceCPU], could[corev1.ResourceCPU])
		if total[corev1.ResourceCPU] < lacks {
			t.Fatalf("%+v do not make the room of %+v", victims, c)
		}
		if highest >= 0 && below[corev1.ResourceCPU] >= c.Room[corev1.ResourceCPU] {
			t.Fatalf("%+v have a higher priority than need be: %+v", victims, c)
		}
		for _, v := range victims {
			if total[corev1.ResourceCPU]-byName[v.Name].Requests[corev1.ResourceCPU] >= lacks {
				t.Fatalf("a replica of %s goes in vain: %+v of %+v", v.Name, victims, c)
			}
		}
		r.Shuffle(len(c.Rivals), func(i, j int) { c.Rivals[i], c.Rivals[j] = c.Rivals[j], c.Rivals[i] })
		if again := c.Victims(); !reflect.DeepEqual(victims, again) {
			t.Fatalf("%+v, and in another order %+v: %+v", victims, again, c)
		}
	}
}
