package mirrors

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"

	"golang.org/x/time/rate"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/mirror"
)

// Reasons of events that controllers write about the pods of what they carry out.
const (
	FailedCreate     = "FailedCreate"
	SuccessfulCreate = "SuccessfulCreate"
)

// eventStore is what a reflector of events writes to: it keeps those that wait to be mirrored and forgets all others at once.
type eventStore struct {
	ours  func(namespace string) bool
	queue workqueue.TypedRateLimitingInterface[types.UID]
	// since is when the syncer started. What happened before has been shown, or is too old to be looked for.
	since time.Time
	// refusal is told of events about our namespaces, and since when they go on. It may be nil.
	refusal func(event *corev1.Event, since time.Time)
	// listed counts what a watch begins with.
	listed *bounds.Gate
	// paces are how fast events about each object are shown, by its UID. It may be nil.
	paces *lru.Cache

	mu     sync.Mutex
	events map[types.UID]*corev1.Event
}

func (s *eventStore) Add(obj any) error {
	event, ok := obj.(*corev1.Event)
	if !ok || !s.ours(event.InvolvedObject.Namespace) {
		return nil
	}
	if s.refusal != nil {
		s.refusal(event, LastSeen(event))
	}
	return s.add(event)
}

// Transformer implements cache.TransformingStore. What a watch begins with is kept until all of it has come, also events about others.
func (s *eventStore) Transformer() cache.TransformFunc {
	return s.listed.Transform(func(obj any) (any, error) {
		event, ok := obj.(*corev1.Event)
		switch {
		case !ok:
			return obj, nil
		case s.ours(event.InvolvedObject.Namespace):
			return mirror.FitEvent(event), nil
		}
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name, ResourceVersion: event.ResourceVersion}}, nil
	})
}

// allowed reports whether there have not been too many events about the same object of late.
func (s *eventStore) allowed(about types.UID) bool {
	if s.paces == nil {
		return true
	}
	pace, ok := s.paces.Get(about)
	if !ok {
		pace = rate.NewLimiter(rate.Every(time.Minute/objectEvents), objectEvents)
		s.paces.Add(about, pace)
	}
	return pace.(*rate.Limiter).Allow()
}

func (s *eventStore) add(event *corev1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waiting := s.events[event.UID]; !waiting && (len(s.events) >= maxEvents || !s.allowed(event.InvolvedObject.UID)) {
		return nil
	}
	text.Repair(event)
	mirror.FitEvent(event)
	s.events[event.UID] = event
	s.queue.Add(event.UID)
	return nil
}

func (s *eventStore) Update(obj any) error { return s.Add(obj) }

// Delete does nothing: an event above ends by its own time to live.
func (s *eventStore) Delete(any) error { return nil }

// Replace takes the list that a watch begins with, less what is older than the syncer. Refusals of before count from when they began.
func (s *eventStore) Replace(list []any, _ string) error {
	defer s.listed.Forget()
	made := map[types.UID]time.Time{} // when a pod was made last
	for _, obj := range list {
		if event, ok := obj.(*corev1.Event); ok && event.Reason == SuccessfulCreate {
			made[event.InvolvedObject.UID] = later(made[event.InvolvedObject.UID], LastSeen(event))
		}
	}
	for _, obj := range list {
		event, ok := obj.(*corev1.Event)
		if !ok || !s.ours(event.InvolvedObject.Namespace) {
			continue
		}
		if last := made[event.InvolvedObject.UID]; s.refusal != nil && event.Reason == FailedCreate && LastSeen(event).After(last) {
			s.refusal(event, later(firstSeen(event), last))
		}
		if LastSeen(event).Before(s.since.Add(-time.Minute)) {
			continue
		}
		if err := s.add(event); err != nil {
			return err
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstSeen is when what an event tells of happened first.
func firstSeen(event *corev1.Event) time.Time {
	if !event.FirstTimestamp.IsZero() {
		return event.FirstTimestamp.Time
	}
	return LastSeen(event)
}

func (s *eventStore) Resync() error { return nil }

func (s *eventStore) get(uid types.UID) *corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[uid]
}

// drop forgets an event unless a later version of it has come meanwhile.
func (s *eventStore) drop(uid types.UID, event *corev1.Event) {
	s.queue.Forget(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events[uid] == event {
		delete(s.events, uid)
	}
}

// LastSeen is when what an event tells of happened last.
func LastSeen(event *corev1.Event) time.Time {
	last := event.CreationTimestamp.Time
	for _, t := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time} {
		if t.After(last) {
			last = t
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	return last
}
