package syncer

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
)

var started = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func newEventStore(t *testing.T) *eventStore {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.UID]())
	t.Cleanup(queue.ShutDown)
	return &eventStore{
		ours: func(namespace string) bool { return namespace == "shop" }, queue: queue, since: started, events: map[types.UID]*corev1.Event{},
		listed: bounds.NewBudget(100, 0, func(error) {}).Gate(),
	}
}

func event(uid string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(at)},
		InvolvedObject: corev1.ObjectReference{Namespace: "shop", Name: "web"},
	}
}

func add(t *testing.T, s *eventStore, e *corev1.Event) {
	t.Helper()
	if err := s.Add(e); err != nil {
		t.Fatal(err)
	}
}

func TestEventsAboutOthersAreForgottenAtOnce(t *testing.T) {
	s := newEventStore(t)
	foreign := event("a", started)
	foreign.InvolvedObject.Namespace = "foreign"
	add(t, s, foreign)
	if s.get("a") != nil || s.queue.Len() != 0 {
		t.Error("an event about somebody else's object is kept")
	}
	add(t, s, event("b", started))
	if s.get("b") == nil || s.queue.Len() != 1 {
		t.Error("an event about an object of ours is not kept")
	}
}

func TestEventsThatWaitAreBounded(t *testing.T) {
	s := newEventStore(t)
	for i := range maxEvents + 10 {
		add(t, s, event(fmt.Sprint(i), started))
	}
	if got := len(s.events); got != maxEvents {
		t.Errorf("%d events wait, want %d", got, maxEvents)
	}
	again := event("0", started)
	again.Count = 2
	add(t, s, again)
	if got := s.get("0"); got.Count != 2 {
		t.Error("a later version of an event that waits is lost when there are many")
	}
}

func TestEventsFromBeforeTheStartAreSkipped(t *testing.T) {
	old, recent := started.Add(-time.Hour), started.Add(time.Second)
	repeated, series, eventTime := event("repeated", old), event("series", old), event("eventTime", old)
	repeated.LastTimestamp = metav1.NewTime(recent)
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(recent)}
	eventTime.EventTime = metav1.NewMicroTime(recent)
	s := newEventStore(t)
	// Clocks of clusters differ a little.
	err := s.Replace([]any{event("old", old), event("new", recent), event("just before", started.Add(-time.Second)), repeated, series, eventTime}, "7")
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[types.UID]bool{"old": false, "new": true, "just before": true, "repeated": true, "series": true, "eventTime": true} {
		if got := s.get(uid) != nil; got != want {
			t.Errorf("event %q is kept: %t, want %t", uid, got, want)
		}
	}
}

func TestDroppingAnEventKeepsALaterVersionOfIt(t *testing.T) {
	s := newEventStore(t)
	first, second := event("a", started), event("a", started)
	add(t, s, first)
	if err := s.Update(second); err != nil {
		t.Fatal(err)
	}
	s.drop("a", first)
	if s.get("a") != second {
		t.Error("the version that came while the first was written is lost")
	}
	s.drop("a", second)
	if s.get("a") != nil {
		t.Error("an event that was written is kept")
	}
}
