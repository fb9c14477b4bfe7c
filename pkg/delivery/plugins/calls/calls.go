// Package calls has plugins run stages of releases: it keeps the calls in flight, one for each stage that runs.
//
// A call takes as long as its stage. What it comes to is kept until the release says so in its status; before that, and after a restart of this process,
// the stage is entered again, by a call of the same name. So it is when the plugin ends in the middle of it, a few times: plugins keep what they need to
// go on in the metadata of the stage. A stage whose plugin is not ready waits for it. Who no longer wants a call has it cancelled, which plugins notice
// as the cancellation of its context.
package calls

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
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
)

const (
	// most is how many stages plugins run at a time, at most, and mostOf how many of one namespace. Each is a goroutine that waits for an answer.
	most, mostOf = 512, 64
	// mostTries is how often a stage is entered whose plugin ends in the middle of it.
	mostTries = 3
	// noticed is how long the host has to notice that a plugin has ended: if it says nothing, the plugin is called again as it is.
	noticed = 10 * time.Second
	// sourcesAgain is when files are asked for again that could not be had.
	sourcesAgain = 10 * time.Second
)

// Options say what Calls work with.
type Options struct {
	Plugins plugins.Directory
	Sources deployments.Sources
	// Clock is for tests; the zero value is the real one.
	Clock clock.WithTicker
}

// Calls are the calls in flight. They may be used by several goroutines.
type Calls struct {
	Options
	places *work.Places
	// wake has Run look for calls that are to begin.
	wake chan struct{}

	mu  sync.Mutex
	all map[key]*call
	// begin are those calls that nobody makes yet.
	begin []*call
	// changed is closed, and replaced, when a plugin is ready or is none any more.
	changed chan struct{}
	tell    []func(app cache.ObjectName)
}

// key is what tells calls apart.
type key struct {
	release types.UID
	name    string
}

// Run is one run of a stage by a plugin.
type Run struct {
	// Application is the application with what the files of the revision say.
	Application *v1alpha1.Application
	Release     *v1alpha1.Release
	// Revision is what is released, and Before what ran before, nil if nothing did.
	Revision, Before *v1alpha1.ApplicationRevision
	// Stage is the ID of the stage, Name unique in the release, and Attempt which one it is, counted from 1.
	Stage   string
	Name    string
	Attempt int32
	// Until is when it is given up; zero is never.
	Until time.Time
}

// call is a run and what has come of it.
type call struct {
	Run
	plugin string
	free   func()
	// The rest is guarded by the lock of Calls. outcome has ended once done is set, and entry is when the plugin was called last.
	outcome delivery.Outcome
	entry   int64
	done    bool
	// cancel is nil until somebody makes the call, and stopped says that nobody wants it any more.
	cancel  context.CancelFunc
	stopped bool
}

// New returns Calls. Nothing is called before Run.
func New(o Options) *Calls {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Calls{Options: o, places: work.NewPlaces(most, mostOf), wake: make(chan struct{}, 1), all: map[key]*call{}, changed: make(chan struct{})}
	o.Plugins.Changed(func(string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.changed)
		c.changed = make(chan struct{})
	})
	return c
}

// Changed has somebody told of the application whose stage has got further. It is called before Run, and what it is given must not block.
func (c *Calls) Changed(tell func(app cache.ObjectName)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell = append(c.tell, tell)
}

// Run makes calls until ctx ends, and returns when none is in flight any more.
func (c *Calls) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
		for _, one := range c.toBegin() {
			within, cancel := context.WithCancel(ctx)
			if !one.Until.IsZero() {
				within, cancel = withDeadline(within, cancel, one.Until)
			}
			if !c.begins(one, cancel) {
				continue
			}
			group.Go(func() {
				defer one.free()
				defer cancel()
				c.ended(ctx, one, c.through(within, one))
			})
		}
	}
}

func withDeadline(ctx context.Context, before context.CancelFunc, until time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, until)
	return ctx, func() { cancel(); before() }
}

// toBegin are the calls that are to begin.
func (c *Calls) toBegin() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.begin
	c.begin = nil
	return out
}

// begins notes how a call is cancelled, and reports whether somebody still wants it.
func (c *Calls) begins(one *call, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.stopped {
		cancel()
		one.free()
		c.remove(one)
		return false
	}
	one.cancel = cancel
	return true
}

// remove forgets a call.
func (c *Calls) remove(one *call) {
	if k := (key{one.Release.UID, one.Name}); c.all[k] == one {
		delete(c.all, k)
	}
}

// errFull says that a stage has to wait for others.
var errFull = errors.New("as many stages of plugins run as may at a time: waiting for one of them to end")

// Outcome has a plugin run a stage if none does yet, and says how far it is. An error is worth another try.
func (c *Calls) Outcome(run Run) (delivery.Outcome, error) {
	stage := run.Release.Status.Plan.ByPlugin(run.Stage)
	if stage == nil {
		return delivery.Outcome{Phase: delivery.Failed, Message: fmt.Sprintf("the plan of the release names no plugin for stage %s", run.Stage)}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key{run.Release.UID, run.Name}
	if one := c.all[k]; one != nil {
		if one.stopped {
			return delivery.Outcome{Phase: delivery.Running, Message: fmt.Sprintf("plugin %q is stopped, and runs it again after that", one.plugin)}, nil
		}
		return one.outcome, nil
	}
	free, ok := c.places.Take(run.Release.Namespace)
	if !ok {
		return delivery.Outcome{}, errFull
	}
	one := &call{Run: run, plugin: stage.Plugin, free: free, outcome: delivery.Outcome{Phase: delivery.Running}}
	c.all[k], c.begin = one, append(c.begin, one)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return one.outcome, nil
}

// Stop cancels the calls of a release that nobody wants any more, and forgets what has come of those whose stages have ended by its status.
func (c *Calls) Stop(release *v1alpha1.Release, keep func(name string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, one := range c.all {
		if k.release != release.UID {
			continue
		}
		switch {
		case one.done:
			if written(release, one) {
				delete(c.all, k)
			}
		case !keep(one.Name):
			one.stop()
		}
	}
}

// Drop cancels all calls of a release that is gone, and forgets what has come of them.
func (c *Calls) Drop(release types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, one := range c.all {
		if k.release == release {
			one.stop()
			if one.done {
				delete(c.all, k)
			}
		}
	}
}

// stop cancels a call. It is there until whoever makes it has left, so that nobody makes it twice at a time.
func (one *call) stop() {
	one.stopped = true
	if one.cancel != nil {
		one.cancel()
	}
}

// written reports whether the status of a release says what has come of a call.
func written(release *v1alpha1.Release, one *call) bool {
	for i := range release.Status.Stages {
		if of := &release.Status.Stages[i]; of.ID == one.Stage {
			return of.Attempt > one.Attempt || of.Attempt == one.Attempt && of.Phase.Ended()
		}
	}
	return release.Status.Phase.Ended()
}

// ended keeps what has come of a call. Of one that was cancelled, or did not come to its end before this process does, nothing is kept.
func (c *Calls) ended(ctx context.Context, one *call, outcome delivery.Outcome) {
	c.mu.Lock()
	one.outcome, one.done = outcome, true
	if one.stopped || ctx.Err() != nil {
		c.remove(one)
	}
	c.mu.Unlock()
	c.notify(one)
}

// say tells what a call waits for.
func (c *Calls) say(one *call, what string) {
	c.mu.Lock()
	same := one.outcome.Message == what
	one.outcome.Message = what
	c.mu.Unlock()
	if !same {
		c.notify(one)
	}
}

func (c *Calls) notify(one *call) {
	c.mu.Lock()
	tell := c.tell
	c.mu.Unlock()
	for _, to := range tell {
		to(cache.MetaObjectToName(one.Application))
	}
}

// InFlight is a stage that a plugin runs now.
type InFlight struct {
	Application *v1alpha1.Application
	Release     *v1alpha1.Release
	Plugin      string
	Attempt     int32
	// Entry is greater each time that the stage is entered.
	Entry int64
}

// InFlight returns the call for a stage of a release, if there is one. Without a stage it is any of the release.
func (c *Calls) InFlight(release types.UID, stage string) (InFlight, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, one := range c.all {
		if k.release == release && (stage == "" || one.Stage == stage) && !one.done && one.entry != 0 {
			return InFlight{one.Application, one.Release, one.plugin, one.Attempt, one.entry}, true
		}
	}
	return InFlight{}, false
}
