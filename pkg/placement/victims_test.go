package placement

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// cores is so many of them, with a pod.
func cores(n int64) Resources {
	return Resources{corev1.ResourceCPU: n * 1000, corev1.ResourcePods: 1}
}

// rivalOn runs so many replicas of so many cores each on east.
func rivalOn(name string, priority int32, replicas int, each int64) Rival {
	return Rival{Name: name, Priority: priority, Requests: cores(each), Decision: shares("east", replicas)}
}

func (r Rival) bound() Rival { r.Bound = true; return r }

func (r Rival) running(replicas int32) Rival {
	r.Running = map[string]int32{"east": replicas}
	return r
}

func TestVictims(t *testing.T) {
	for name, test := range map[string]struct {
		lacks   int64 // cores
		rivals  []Rival
		levels  []Level
		want    []Victim
		leaving []Victim
	}{
		"the lowest priority goes first": {
			lacks: 2, rivals: []Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)}, want: []Victim{{"low", 0, 2}},
		},
		"where that is not enough the next one as well": {
			lacks: 3, rivals: []Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)}, want: []Victim{{"low", 0, 2}, {"middle", 5, 1}},
		},
		"what would go in vain is spared": {
			lacks: 3, rivals: []Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 1, 3)}, want: []Victim{{"middle", 5, 1}},
		},
		"only as many replicas as are needed": {lacks: 3, rivals: []Rival{rivalOn("low", 0, 9, 2)}, want: []Victim{{"low", 0, 2}}},
		"nothing of the same or a higher priority": {
			lacks: 3, rivals: []Rival{rivalOn("low", 0, 1, 1), rivalOn("same", 100, 9, 1), rivalOn("higher", 200, 9, 1)}, want: []Victim{{"low", 0, 1}},
		},
		"fewest have to go": {
			lacks: 4, rivals: []Rival{rivalOn("small", 0, 4, 1), rivalOn("large", 0, 2, 4)}, want: []Victim{{"large", 0, 1}},
		},
		"what can run elsewhere goes before what cannot": {
			lacks: 2, rivals: []Rival{rivalOn("a", 0, 2, 1).bound(), rivalOn("b", 0, 2, 1)}, want: []Victim{{"b", 0, 2}},
		},
		"what has more replicas loses one": {
			lacks: 1, rivals: []Rival{rivalOn("many", 0, 3, 1), rivalOn("single", 0, 1, 1)}, want: []Victim{{"many", 0, 1}},
		},
		"but not at the price of a higher priority": {
			lacks: 2, rivals: []Rival{rivalOn("a", 0, 2, 1).bound(), rivalOn("b", 5, 2, 1)}, want: []Victim{{"a", 0, 2}},
		},
		"pods that nobody here has placed count as well": {
			lacks: 2, rivals: []Rival{rivalOn("middle", 5, 2, 1)}, levels: []Level{{0, Resources{corev1.ResourceCPU: 4000, corev1.ResourcePods: 2}}},
			want: []Victim{{"", 0, 1}},
		},
		"those of a workload are not counted twice": {
			lacks: 3, rivals: []Rival{rivalOn("low", 0, 2, 1), rivalOn("middle", 5, 2, 1)},
			levels: []Level{{0, Resources{corev1.ResourceCPU: 2000, corev1.ResourcePods: 2}}, {5, Resources{corev1.ResourceCPU: 2000, corev1.ResourcePods: 2}}},
			want:   []Victim{{"low", 0, 2}, {"middle", 5, 1}},
		},
		"room that becomes free anyway is not taken from others": {
			lacks: 2, rivals: []Rival{rivalOn("goes", 0, 1, 1).running(3), rivalOn("low", 0, 2, 1)}, leaving: []Victim{{"goes", 0, 2}},
		},
		"and what is lacking beyond it is": {
			lacks: 3, rivals: []Rival{rivalOn("goes", 5, 0, 1).running(2), rivalOn("low", 0, 2, 1)}, leaving: []Victim{{"goes", 5, 2}},
			want: []Victim{{"low", 0, 1}},
		},
		"nothing lacks": {lacks: 0, rivals: []Rival{rivalOn("low", 0, 2, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Contest{Cluster: "east", Room: Resources{corev1.ResourceCPU: test.lacks * 1000}, Priority: 100, Rivals: test.rivals, Levels: test.levels}
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
		c := Contest{Cluster: "east", Priority: 100, Room: Resources{corev1.ResourceCPU: r.Int64N(12) * 1000}}
		for _, name := range []string{"a", "b", "c", "d", "e"}[:r.IntN(6)] {
			rival := rivalOn(name, r.Int32N(6)*25, r.IntN(4), 1+r.Int64N(4))
			rival.Bound = r.IntN(3) == 0
			c.Rivals = append(c.Rivals, rival)
		}
		victims := c.Victims()
		byName, highest, total := map[string]Rival{}, int32(-1), Resources{}
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
		could, below := Resources{}, Resources{}
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
