package mirrors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"

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

func TestEventsAreCutAndCleaned(t *testing.T) {
	s := newEventStore(t)
	long := event("a", started)
	long.Message = "\x1b[2J" + strings.Repeat("ä\u202e", 1<<20)
	long.Reason = strings.Repeat("x", 1<<20)
	long.Labels = map[string]string{"manifold.dev/x": "y"}
	long.Annotations = map[string]string{"x": long.Reason}
	long.InvolvedObject.FieldPath, long.Source.Host = "a\xff\nb", long.Reason
	add(t, s, long)
	got := s.get("a")
	if size := got.Size(); size > 6<<10 {
		t.Errorf("the event has %d bytes", size)
	}
	if !strings.HasPrefix(got.Message, `^[[2Jä\u202eä`) || len(got.Labels)+len(got.Annotations) > 0 || got.InvolvedObject.FieldPath != "a\ufffd b" {
		t.Errorf("got %+v", got)
	}
}

func TestEventsAboutOneObjectArePaced(t *testing.T) {
	s := newEventStore(t)
	s.paces = lru.New(10)
	about := func(uid, object string) *corev1.Event {
		e := event(uid, started)
		e.InvolvedObject.UID = types.UID(object)
		return e
	}
	for i := range 10 * objectEvents {
		add(t, s, about(fmt.Sprint(i), "web"))
	}
	if got := len(s.events); got != objectEvents {
		t.Errorf("%d events about one object wait, want %d", got, objectEvents)
	}
	add(t, s, about("other", "api"))
	if s.get("other") == nil {
		t.Error("an event about another object is left out")
	}
}

func TestWhatAWatchOfEventsBeginsWithIsBounded(t *testing.T) {
	s := newEventStore(t)
	transform := s.Transformer()
	passed := 0
	for i := range 1000 {
		e := event(fmt.Sprint(i), started)
		e.Namespace, e.Name = "shop", fmt.Sprint(i)
		e.Message = strings.Repeat("x", 1<<20)
		if i%2 == 0 {
			e.InvolvedObject.Namespace = "foreign"
		}
		got, err := transform(e)
		if err != nil {
			continue
		}
		passed++
		if size := got.(*corev1.Event).Size(); size > 6<<10 {
			t.Fatalf("an event of %d bytes is kept", size)
		}
	}
	if passed != 100 {
		t.Errorf("%d events are kept, want 100", passed)
	}
	if err := s.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := transform(event("new", started.Add(time.Hour))); err != nil {
		t.Errorf("after the beginning there is no room: %v", err)
	}
	var _ cache.TransformingStore = s
}

// A watch that begins anew does not tell when what is still refused began, but events do.
func TestRefusalsOfBeforeAStartCountFromWhenTheyBegan(t *testing.T) {
	told := func(reason string, first, last time.Duration) *corev1.Event {
		e := event(reason, started)
		e.Reason, e.FirstTimestamp, e.LastTimestamp = reason, metav1.NewTime(started.Add(first)), metav1.NewTime(started.Add(last))
		e.CreationTimestamp = e.FirstTimestamp
		return e
	}
	fails := told(FailedCreate, -time.Hour, -time.Minute)
	made := func(at time.Duration) *corev1.Event { return told(SuccessfulCreate, at, at) }
	for name, test := range map[string]struct {
		before []any
		want   []time.Duration
	}{
		"since it began":                {[]any{fails}, []time.Duration{-time.Hour}},
		"but not before a pod was made": {[]any{fails, made(-30 * time.Minute)}, []time.Duration{-30 * time.Minute}},
		"nothing that a pod followed":   {[]any{fails, made(0)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEventStore(t)
			var got []time.Duration
			s.refusal = func(_ *corev1.Event, since time.Time) { got = append(got, since.Sub(started)) }
			if err := s.Replace(test.before, ""); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("told of refusals since %v, want %v", got, test.want)
			}
		})
	}
}
