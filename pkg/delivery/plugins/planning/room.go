package planning

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
)

const (
	// atOnce is how many releases are planned at a time, and atOnceOf how many of one namespace: a plugin that does not answer holds up its own users.
	atOnce, atOnceOf = 16, 4
	// lookAtOnce and lookAtOnceOf are the same for previews, and lookWithin is how long plugins have to tell: a request of the API waits for them.
	lookAtOnce, lookAtOnceOf = 8, 2
	lookWithin               = 45 * time.Second
	// kept is for how long an answer is kept that nobody asks for any more: the release has ended meanwhile.
	kept = 10 * time.Minute
	// longest bounds a whole question, in which each plugin may be asked several times.
	longest = 5 * time.Minute
)

// Room has questions asked while others go on, and keeps the answers until they are taken.
type Room struct {
	planner interface {
		Plan(ctx context.Context, q Question) (*Answer, error)
		Preview(ctx context.Context, q Question) ([]v1alpha1.PluginPreview, error)
	}
	clock  clock.PassiveClock
	places *work.Places
	// previews are the places of those that people wait for, so that releases do not wait for these.
	previews *work.Places

	mu     sync.Mutex
	ctx    context.Context // nil while it does not run
	asked  map[types.UID]*inquiry
	notify func(application cache.ObjectName)
	going  sync.WaitGroup
}

// inquiry is a question that was asked.
type inquiry struct {
	about  string
	cancel context.CancelFunc
	since  time.Time
	done   bool
	answer *Answer
	err    error
}

// NewRoom returns a room in which a planner asks.
func NewRoom(planner *Planner) *Room {
	return &Room{planner: planner, clock: clock.RealClock{}, places: work.NewPlaces(atOnce, atOnceOf), previews: work.NewPlaces(lookAtOnce, lookAtOnceOf), asked: map[types.UID]*inquiry{}, notify: func(cache.ObjectName) {}}
}

// Changed has somebody told of which applications the question has been answered. It is called before Run.
func (r *Room) Changed(notify func(application cache.ObjectName)) { r.notify = notify }

// Run lets questions be asked until ctx ends, and returns when all that were have ended.
func (r *Room) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.ctx = nil // nothing begins any more
	r.mu.Unlock()
	r.going.Wait()
	return ctx.Err()
}

// Plan returns how a release goes once plugins have said so. A WaitError says what is waited for meanwhile; it never blocks.
func (r *Room) Plan(q Question) (*Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	id, about := q.Release.UID, aboutOf(q)
	known := r.asked[id]
	if known != nil && known.about != about {
		known.cancel()
		delete(r.asked, id)
		known = nil
	}
	switch {
	case known == nil:
		return nil, r.ask(q, id, about)
	case !known.done:
		return nil, waits("plugins are asked how the release goes")
	}
	if wait := (WaitError{}); errors.As(known.err, &wait) || errors.Is(known.err, context.Canceled) {
		delete(r.asked, id) // it is asked again the next time
	}
	return known.answer, known.err
}

// aboutOf tells questions about one release apart.
func aboutOf(q Question) string {
	running := ""
	if q.Running != nil {
		running = q.Running.Name
	}
	return fmt.Sprint(q.Application.UID, q.Application.Generation, q.Revision.UID, running)
}

// ask begins to ask, if there is a place for it.
func (r *Room) ask(q Question, id types.UID, about string) error {
	if r.ctx == nil || r.ctx.Err() != nil {
		return waits("plugins are not asked yet")
	}
	free, ok := r.places.Take(q.Application.Namespace)
	if !ok {
		return waits("plugins are asked about other releases first")
	}
	ctx, cancel := context.WithTimeout(r.ctx, longest)
	of := &inquiry{about: about, cancel: cancel, since: r.clock.Now()}
	r.asked[id] = of
	r.going.Add(1)
	go func() {
		defer r.going.Done()
		defer free()
		defer cancel()
		answer, err := r.plan(ctx, q)
		r.mu.Lock()
		of.done, of.answer, of.err = true, answer, err
		r.mu.Unlock()
		r.notify(cache.MetaObjectToName(q.Application))
	}()
	return waits("plugins are asked how the release goes")
}

// plan turns a panic into an error: what is read has been written by others.
func (r *Room) plan(ctx context.Context, q Question) (answer *Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("plan Release %s/%s with plugins: %v", q.Release.Namespace, q.Release.Name, p)
		}
	}()
	answer, err = r.planner.Plan(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("plugins have not planned Release %s within %s", q.Release.Name, longest)
	}
	return answer, err
}

// BusyError says that plugins cannot be asked at the moment, and may be in a while.
type BusyError struct{ Why string }

// Error implements error.
func (e BusyError) Error() string { return e.Why }

// Preview asks plugins what a release would change, and waits for what they say. Whoever asks too often gets a BusyError.
func (r *Room) Preview(ctx context.Context, q Question) (found []v1alpha1.PluginPreview, err error) {
	r.mu.Lock()
	runs := r.ctx
	if runs == nil || runs.Err() != nil {
		r.mu.Unlock()
		return nil, BusyError{"plugins are not asked yet"}
	}
	free, ok := r.previews.Take(q.Application.Namespace)
	if !ok {
		r.mu.Unlock()
		return nil, BusyError{fmt.Sprintf("plugins are asked for other previews first: %d at a time of a namespace, and %d in all", lookAtOnceOf, lookAtOnce)}
	}
	r.going.Add(1)
	r.mu.Unlock()
	defer r.going.Done()
	defer free()
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	defer context.AfterFunc(runs, cancel)()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ask plugins about Application %s/%s: %v", q.Application.Namespace, q.Application.Name, p)
		}
	}()
	found, err = r.planner.Preview(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("plugins have not told within %s what a release of Application %s/%s would change", lookWithin, q.Application.Namespace, q.Application.Name)
	}
	return found, err
}

// forget lets go of what nobody has asked for in a while. Whoever asks for it still has it asked again.
func (r *Room) forget() {
	for id, of := range r.asked {
		if of.done && r.clock.Since(of.since) > kept {
			delete(r.asked, id)
		}
	}
}

// Uses reports whether an application uses a plugin.
func Uses(app *v1alpha1.Application, plugin string) bool {
	for i := range app.Spec.Plugins {
		if app.Spec.Plugins[i].Name == plugin {
			return true
		}
	}
	return false
}
