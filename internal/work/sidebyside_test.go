package work

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWhatIsDoneSideBySide(t *testing.T) {
	const workers = 4
	var together sync.WaitGroup
	together.Add(workers)
	var done [workers]atomic.Int32
	SideBySide(t.Context(), workers, workers, func(i int) bool {
		together.Done()
		together.Wait() // nobody ends before all have begun
		done[i].Add(1)
		return true
	})
	for i := range done {
		if got := done[i].Load(); got != 1 {
			t.Errorf("%d is done %d times", i, got)
		}
	}
	for name, end := range map[string]func(cancel func()) (goOn bool){
		"one that is not to go on": func(func()) bool { return false },
		"whoever has no more use":  func(cancel func()) bool { cancel(); return true },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		begun := 0
		SideBySide(ctx, 1, 1000, func(i int) bool {
			begun++
			return i != 10 || end(cancel)
		})
		if begun != 11 {
			t.Errorf("%s: %d of 1000 are begun, want 11", name, begun)
		}
		cancel()
	}
}

// Who steps through a key survives a panic of what it does side by side, as one of its own.
func TestAPanicOfOneIsThatOfWhoeverAsked(t *testing.T) {
	err := safely(t.Context(), "key", func(ctx context.Context, _ string) error {
		SideBySide(ctx, 4, 100, func(i int) bool {
			if i == 3 {
				panic("no such thing")
			}
			return true
		})
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "panic at key: no such thing") {
		t.Errorf("error %v", err)
	}
}

func TestWhatComesBeforeOneThatStopsIsDone(t *testing.T) {
	for range 200 {
		var done [8]atomic.Bool
		SideBySide(t.Context(), 8, 8, func(i int) bool {
			done[i].Store(true)
			return i != 5
		})
		for i := range 6 {
			if !done[i].Load() {
				t.Fatalf("%d is not done, and the sixth is", i)
			}
		}
	}
}
