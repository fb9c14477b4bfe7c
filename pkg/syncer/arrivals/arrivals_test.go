package arrivals

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoWaitsIsWokenByWhatArrivesThere(t *testing.T) {
	for name, test := range map[string]struct {
		there bool     // at once
		seen  []string // namespaces in which something arrives
		asked int      // how often it is looked
		late  bool     // that it is given up
	}{
		"what is there is not waited for":               {there: true, asked: 1},
		"what arrives in the namespace is looked at":    {seen: []string{"shop"}, asked: 2},
		"what arrives elsewhere is not":                 {seen: []string{"bank"}, asked: 1, late: true},
		"something else may arrive first":               {seen: []string{"shop", "bank", "shop"}, asked: 3},
		"it is given up when nothing of it has arrived": {asked: 1, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var a Arrivals
				there, asked := test.there, 0
				result := make(chan error, 1)
				go func() { result <- a.Await(ctx, "shop", func() bool { asked++; return there }) }()
				for i, namespace := range test.seen {
					synctest.Wait()
					there = i == len(test.seen)-1
					a.Seen(namespace)
				}
				if err := <-result; errors.Is(err, context.DeadlineExceeded) != test.late || !test.late && err != nil {
					t.Errorf("it ends with %v, want that it is given up: %t", err, test.late)
				}
				if asked != test.asked {
					t.Errorf("it looks %d times, want %d", asked, test.asked)
				}
				if len(a.waiting) != 0 {
					t.Errorf("%d namespaces are kept", len(a.waiting))
				}
			})
		})
	}
}

// What arrives between a look and the wait for more is not missed.
func TestWhatArrivesDuringALookIsSeen(t *testing.T) {
	var a Arrivals
	looks := 0
	if err := a.Await(t.Context(), "shop", func() bool {
		if looks++; looks < 3 {
			a.Seen("shop")
		}
		return looks == 3
	}); err != nil {
		t.Fatal(err)
	}
}

func TestManyWaitForTheSame(t *testing.T) {
	var a Arrivals
	var there sync.Map
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := a.Await(t.Context(), "shop", func() bool { _, ok := there.Load("it"); return ok }); err != nil {
				t.Error(err)
			}
		})
	}
	there.Store("it", true)
	a.Seen("shop")
	all.Wait()
	if len(a.waiting) != 0 {
		t.Errorf("%d namespaces are kept", len(a.waiting))
	}
}
