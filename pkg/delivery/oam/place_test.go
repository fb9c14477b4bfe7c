package oam

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func weights(of ...int64) (out []Entry) {
	for _, weight := range of {
		out = append(out, Entry{Replicas: -1, Weight: weight})
	}
	return out
}

func TestK14ReplicasAreDividedByTheLargestRemainder(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		entries  []Entry
		want     []int32
	}{
		"half and half":                    {10, weights(50, 50), []int32{5, 5}},
		"an odd one goes to the first":     {5, weights(50, 50), []int32{3, 2}},
		"a third each":                     {10, weights(1, 1, 1), []int32{4, 3, 3}},
		"the largest remainder":            {10, weights(55, 45), []int32{6, 4}},
		"weights are shares and no parts":  {10, weights(50), []int32{10}},
		"nothing of nothing":               {0, weights(50, 50), []int32{0, 0}},
		"who has no weight gets nothing":   {3, weights(0, 1), []int32{0, 3}},
		"numbers are what they are":        {10, []Entry{{Replicas: 3}, {Replicas: 0}}, []int32{3, 0}},
		"more entries than replicas":       {1, weights(1, 1, 1), []int32{1, 0, 0}},
		"large weights do not overflow":    {100_000, weights(1_000_000, 1_000_000), []int32{50_000, 50_000}},
		"the same share for whoever is in": {7, weights(100, 100), []int32{4, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Distribute(test.replicas, test.entries); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestK14NoReplicaIsLostOrAdded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		entries, total := weights(1+random.Int64N(5)), random.Int32N(1000)
		for range random.IntN(6) {
			entries = append(entries, weights(random.Int64N(100))...)
		}
		sum := int32(0)
		for _, part := range Distribute(total, entries) {
			sum += part
		}
		if sum != total {
			t.Fatalf("%d of %d for %v", sum, total, entries)
		}
	}
}

func picker(recorded ...PickStatus) *Picker {
	return &Picker{
		Clusters: []Cluster{{"east", map[string]string{"usage": "production"}}, {"west", map[string]string{"usage": "production", "tier": "b"}}, {"north", nil}},
		Home:     func(cluster string) bool { return cluster == "north" }, Owner: "shop/web", Recorded: recorded,
	}
}

func selects(name string, labels map[string]string) Entry {
	return Entry{Selector: ClusterSelector{Name: name, Labels: labels}}
}

func TestClustersAreSelectedByNameAndLabels(t *testing.T) {
	production := map[string]string{"usage": "production"}
	for name, test := range map[string]struct {
		entry Entry
		want  []string
	}{
		"K11 by labels":                       {selects("", map[string]string{"usage": "production", "tier": "b"}), []string{"west"}},
		"K12 by name":                         {selects("east", nil), []string{"east"}},
		"K12 by both, which hold":             {selects("east", production), []string{"east"}},
		"K12 by both, of which one does not":  {selects("north", production), []string{""}},
		"K13 one of several":                  {selects("", production), []string{"east", "west"}},
		"a cluster that there is not":         {selects("south", nil), []string{""}},
		"K15 the object's own without either": {Entry{}, []string{"north"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := picker().Pick("web", test.entry); !slices.Contains(test.want, got) {
				t.Errorf("picks %q, want one of %q", got, test.want)
			}
		})
	}
}

func TestK13APickIsStableAndMovesOnlyIfItsClusterLeaves(t *testing.T) {
	any := selects("", map[string]string{"usage": "production"})
	first := picker()
	was := first.Pick("web", any)
	if again := picker().Pick("web", any); again != was {
		t.Errorf("picks %s, and then %s", was, again)
	}
	recorded := first.Picked()
	if len(recorded) != 1 || recorded[0] != (PickStatus{"web", "usage=production", was}) {
		t.Fatalf("recorded is %+v", recorded)
	}
	for i := range 50 { // somebody comes to whom it would belong
		next := picker(recorded...)
		next.Clusters = append(next.Clusters, Cluster{fmt.Sprintf("new-%d", i), map[string]string{"usage": "production"}})
		if got := next.Pick("web", any); got != was {
			t.Fatalf("new-%d comes, and it moves to %s", i, got)
		}
	}
	gone := picker(recorded...)
	gone.Clusters = slices.DeleteFunc(gone.Clusters, func(c Cluster) bool { return c.Name == was })
	if got := gone.Pick("web", any); got == was || got == "" {
		t.Errorf("%s has left, and it is in %q", was, got)
	}
	relabelled := picker(recorded...)
	for i := range relabelled.Clusters {
		if relabelled.Clusters[i].Name == was {
			relabelled.Clusters[i].Labels = nil
		}
	}
	if got := relabelled.Pick("web", any); got == was || got == "" {
		t.Errorf("%s is no longer selected, and it is in %q", was, got)
	}
}

func TestK13OnlyWhatBelongsToAClusterThatLeavesMoves(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	spread := map[string]int{}
	for i := range 1000 {
		key := fmt.Sprintf("component-%d", i)
		was := rendezvous(key, all)
		spread[was]++
		without := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "c" })
		if now := rendezvous(key, without); was != "c" && now != was {
			t.Fatalf("c leaves, and %s moves from %s to %s", key, was, now)
		}
	}
	for _, name := range all {
		if n := spread[name]; n < 120 || n > 280 {
			t.Errorf("%s has %d of 1000", name, n)
		}
	}
}

func TestPartsOfOneClusterAddUp(t *testing.T) {
	revision := Revision{Application: "web", Number: 1, Variant: "v1", Entries: []Entry{
		{Selector: ClusterSelector{Name: "east"}, Replicas: -1, Weight: 1}, {Selector: ClusterSelector{Name: "east"}, Replicas: -1, Weight: 1},
		{Selector: ClusterSelector{Name: "south"}, Replicas: -1, Weight: 2},
	}}
	size, missing := Place(revision, map[string]int32{"Deployment/web": 8, "StatefulSet/db": 3}, picker())
	if want := (Size{"east": {"Deployment/web": 4, "StatefulSet/db": 2}}); !size.Equal(want) {
		t.Errorf("%v, want %v", size, want)
	}
	// K41: what has no cluster is told, and is nobody else's.
	if len(missing) != 1 || missing[0].Replicas != 5 || missing[0].String() != "no cluster matches name:south" {
		t.Errorf("missing are %+v", missing)
	}
}

func TestSizesGrowAndCover(t *testing.T) {
	small, large := Size{"east": {"a": 2}}, Size{"east": {"a": 1, "b": 1}, "west": {"a": 3}}
	grown := small.Grown(large)
	if want := (Size{"east": {"a": 2, "b": 1}, "west": {"a": 3}}); !grown.Equal(want) || !grown.Covers(small) || !grown.Covers(large) || small.Covers(large) || grown.Sum() != 6 {
		t.Errorf("%v, want %v", grown, want)
	}
	if !maps.Equal(small["east"], map[string]int32{"a": 2}) {
		t.Errorf("an argument was changed: %v", small)
	}
}
