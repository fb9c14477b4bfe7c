package planning

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// answering is a planner that answers when it is let.
type answering struct {
	asked atomic.Int32
	say   chan error
}

func (a *answering) Plan(ctx context.Context, _ Question) (*Answer, error) {
	a.asked.Add(1)
	select {
	case err := <-a.say:
		return &Answer{Strategy: "QuickSync"}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *answering) Preview(ctx context.Context, _ Question) ([]v1alpha1.PluginPreview, error) {
	a.asked.Add(1)
	select {
	case err := <-a.say:
		return []v1alpha1.PluginPreview{{Plugin: "toy"}}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inRoom runs a room over a planner, and returns how often somebody was told.
func inRoom(t *testing.T, planner *answering, test func(r *Room, told *atomic.Int32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		planner.say = make(chan error)
		r, told := NewRoom(nil), &atomic.Int32{}
		r.planner = planner
		r.Changed(func(app cache.ObjectName) {
			if app.String() == "shop/web" {
				told.Add(1)
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		test(r, told)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		if _, err := r.Plan(question(func(q *Question) { q.Release.UID = "late" })); !isWait(err) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func isWait(err error) bool { return errors.As(err, &WaitError{}) }

func TestAQuestionIsAskedOnceWhileOthersGoOn(t *testing.T) {
	planner := &answering{}
	inRoom(t, planner, func(r *Room, told *atomic.Int32) {
		for range 3 {
			if _, err := r.Plan(question(nil)); !isWait(err) {
				t.Fatalf("error %v", err)
			}
			synctest.Wait()
		}
		planner.say <- nil
		synctest.Wait()
		if told.Load() != 1 {
			t.Errorf("%d were told", told.Load())
		}
		for range 2 { // whoever could not begin yet asks once more
			if answer, err := r.Plan(question(nil)); err != nil || answer.Strategy != "QuickSync" {
				t.Errorf("answer %v, %v", answer, err)
			}
		}
		if planner.asked.Load() != 1 {
			t.Errorf("it was asked %d times", planner.asked.Load())
		}
		// What it is about has changed: it is another question.
		if _, err := r.Plan(question(func(q *Question) { q.Application.Generation++ })); !isWait(err) {
			t.Errorf("error %v", err)
		}
		planner.say <- nil
	})
}

func TestWhatWasWaitedForIsAskedAgain(t *testing.T) {
	planner := &answering{}
	inRoom(t, planner, func(r *Room, _ *atomic.Int32) {
		for _, said := range []error{waits("a plugin"), errors.New("no such stage")} {
			_, _ = r.Plan(question(nil))
			planner.say <- said
			synctest.Wait()
			if _, err := r.Plan(question(nil)); !errors.Is(err, said) {
				t.Errorf("error %v, want %v", err, said)
			}
		}
		if _, err := r.Plan(question(nil)); err == nil || isWait(err) || planner.asked.Load() != 2 {
			t.Errorf("an error that stays: %v, after %d questions", err, planner.asked.Load())
		}
	})
}

func TestNobodyTakesThePlacesOfOthers(t *testing.T) {
	planner := &answering{}
	inRoom(t, planner, func(r *Room, _ *atomic.Int32) {
		for i := range atOnceOf + 2 {
			_, _ = r.Plan(question(func(q *Question) { q.Release.UID = types.UID(rune('a' + i)) }))
		}
		synctest.Wait()
		if got := planner.asked.Load(); got != atOnceOf {
			t.Errorf("a namespace has %d questions asked at a time", got)
		}
		_, _ = r.Plan(question(func(q *Question) { q.Release.UID, q.Application.Namespace = "other", "other" }))
		synctest.Wait()
		if got := planner.asked.Load(); got != atOnceOf+1 {
			t.Errorf("another namespace does not get one")
		}
	})
}

func TestPreviewsAreBoundedForEachNamespace(t *testing.T) {
	planner := &answering{}
	inRoom(t, planner, func(r *Room, _ *atomic.Int32) {
		answers := make(chan error)
		ask := func(namespace string) {
			_, err := r.Preview(context.Background(), question(func(q *Question) { q.Application.Namespace = namespace }))
			answers <- err
		}
		for range lookAtOnceOf {
			go ask("shop")
		}
		synctest.Wait()
		if _, err := r.Preview(context.Background(), question(nil)); !errors.As(err, &BusyError{}) {
			t.Errorf("one more of the namespace: %v", err)
		}
		go ask("other")
		synctest.Wait()
		if asked := planner.asked.Load(); asked != lookAtOnceOf+1 {
			t.Errorf("%d are asked", asked)
		}
		planner.say <- nil
		planner.say <- errors.New("boom")
		planner.say <- nil
		failed := 0
		for range lookAtOnceOf + 1 {
			if err := <-answers; err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d fail, want the one of which the plugin has said so", failed)
		}
		// Nobody answers this one.
		if _, err := r.Preview(context.Background(), question(nil)); err == nil || !strings.Contains(err.Error(), "have not told within 45s") {
			t.Errorf("without an answer: %v", err)
		}
	})
	if _, err := NewRoom(nil).Preview(t.Context(), question(nil)); !errors.As(err, &BusyError{}) {
		t.Errorf("before it runs: %v", err)
	}
}
