package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// taken takes all that waits in a queue, in order.
func taken(q *Fair[string]) string {
	var out []string
	for q.Len() > 0 {
		key, _ := q.Get()
		out = append(out, key)
		q.Done(key)
	}
	return strings.Join(out, " ")
}

func TestWhoAddsManyHoldsUpHisOwnAlone(t *testing.T) {
	for name, test := range map[string]struct {
		add  func(*Fair[string])
		want string
	}{
		"one that comes late is taken at its turn": {
			func(q *Fair[string]) {
				for _, key := range []string{"e1", "e2", "e3"} {
					q.AddFor("east", key, 0)
				}
				q.AddFor("west", "w1", 0)
			}, "e1 w1 e2 e3",
		},
		"what nobody was named for has a turn": {
			func(q *Fair[string]) {
				for _, key := range []string{"e1", "e2", "e3"} {
					q.AddFor("east", key, 0)
				}
				q.Add("a")
				q.Add("b")
			}, "e1 a e2 b e3",
		},
		"a key of two is taken at the first turn, once": {
			func(q *Fair[string]) {
				for _, key := range []string{"e1", "e2", "both", "e3"} {
					q.AddFor("east", key, 0)
				}
				q.AddFor("west", "both", 0)
			}, "e1 both e2 e3",
		},
		"one that was taken at another's turn is not taken again": {
			func(q *Fair[string]) {
				q.AddFor("east", "both", 0)
				q.AddFor("east", "e1", 0)
				q.AddFor("east", "e2", 0)
				q.AddFor("west", "both", 0)
				q.AddFor("west", "w1", 0)
				q.AddFor("west", "w2", 0)
			}, "both w1 e1 w2 e2",
		},
		"a key that is added again stands where it stood": {
			func(q *Fair[string]) {
				for _, key := range []string{"e1", "e2", "e1"} {
					q.AddFor("east", key, 0)
				}
			}, "e1 e2",
		},
		"the order of one owner is that in which keys came": {
			func(q *Fair[string]) {
				for _, key := range []string{"e1", "e2", "e3"} {
					q.AddFor("east", key, 0)
				}
			}, "e1 e2 e3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewFairQueue[string]("", time.Millisecond, time.Second)
			defer q.ShutDown()
			test.add(q)
			if got := taken(q); got != test.want {
				t.Errorf("took %q, want %q", got, test.want)
			}
			if l := q.lines; len(l.byOwner)+len(l.turns)+len(l.named)+len(l.in) > 0 {
				t.Errorf("an empty queue remembers %v, %v, %v, %v", l.byOwner, l.turns, l.named, l.in)
			}
		})
	}
}

func TestAFloodDelaysOthersByAsManyAsThereAre(t *testing.T) {
	q := NewFairQueue[string]("", time.Millisecond, time.Second)
	defer q.ShutDown()
	for i := range 10000 {
		q.AddFor("flood", fmt.Sprint("f", i), 0)
	}
	for i := range 10 {
		q.AddFor("quiet", fmt.Sprint("q", i), 0)
	}
	var order []string
	for range 20 {
		key, _ := q.Get()
		order = append(order, key)
		q.Done(key)
		q.AddFor("flood", key+"again", 0)
	}
	quiet := slices.DeleteFunc(order, func(key string) bool { return strings.HasPrefix(key, "f") })
	if len(quiet) != 10 {
		t.Errorf("of 20 that were taken, %d are of the one who has few", len(quiet))
	}
}

func TestWhatFailsIsTriedAgainAtTheTurnOfItsOwner(t *testing.T) {
	q := NewFairQueue[string]("", 0, 0)
	defer q.ShutDown()
	q.AddFor("east", "bad", 0)
	key, _ := q.Get()
	q.AddRateLimited(key)
	q.Done(key)
	if got := q.lines.in[key]; !slices.Equal(got, []string{"east"}) {
		t.Errorf("it waits in the lines of %q", got)
	}
	q.Forget(key)
	if len(q.lines.last) > 0 {
		t.Errorf("remembers %v", q.lines.last)
	}
}

func TestWhatAWorkerLooksAtAgainWaitsAtTheTurnOfItsOwner(t *testing.T) {
	q := NewFairQueue[string]("", 0, 0)
	defer q.ShutDown()
	q.AddFor("east", "slow", 0)
	key, _ := q.Get()
	q.AddAgain(key, 0)
	q.Forget(key)
	q.Done(key)
	if got := q.lines.in[key]; !slices.Equal(got, []string{"east"}) {
		t.Errorf("it waits in the lines of %q", got)
	}
}
