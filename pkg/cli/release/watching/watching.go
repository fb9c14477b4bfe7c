// Package watching shows a release while it goes on, and returns how it has ended.
package watching

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
)

// Follower follows releases for somebody who looks on.
type Follower struct {
	client versioned.Interface
	out    io.Writer
	// screen is nil where changes are written as lines.
	screen *output.Screen
	clock  clock.WithTicker
}

// New returns a follower that draws on a terminal, or writes lines to what is none.
func New(client versioned.Interface, out io.Writer) *Follower {
	return &Follower{client: client, out: out, screen: output.ScreenOf(out), clock: clock.RealClock{}}
}

// Follow shows a release until it has ended, and returns an error that says why if it did not succeed.
func (f *Follower) Follow(ctx context.Context, namespace, name string) error {
	if f.screen == nil {
		return f.lines(ctx, namespace, name)
	}
	states := make(chan *v1alpha1.Release)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(states)
		return f.watch(ctx, namespace, name, func(release *v1alpha1.Release) error {
			select {
			case states <- release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	group.Go(func() error { return f.draw(states) })
	return group.Wait()
}

// watch hands on each state of a release, until it has ended.
func (f *Follower) watch(ctx context.Context, namespace, name string, next func(*v1alpha1.Release) error) error {
	var last *v1alpha1.Release
	err := follow.Object(ctx, f.client.DeliveryV1alpha1().Releases(namespace), f.client, &v1alpha1.Release{}, name,
		func(release *v1alpha1.Release) (bool, error) {
			if release == nil && last == nil {
				return true, fmt.Errorf("there is no release %q in namespace %q", name, namespace)
			}
			if release == nil || last != nil && last.UID != release.UID {
				return true, fmt.Errorf("release %q has been deleted meanwhile; it was %s", name, progress.Phase(last))
			}
			last = release
			return release.Status.Phase.Ended(), next(release)
		})
	if err != nil {
		return err
	}
	return progress.Outcome(last)
}

// lines writes what changes, a line each.
func (f *Follower) lines(ctx context.Context, namespace, name string) error {
	var before *v1alpha1.Release
	advised := ""
	return f.watch(ctx, namespace, name, func(release *v1alpha1.Release) error {
		for _, line := range progress.Changes(before, release) {
			if _, err := fmt.Fprintln(f.out, line); err != nil {
				return err
			}
		}
		before = release
		advice := adviceFor(release)
		if advice == advised || advice == "" {
			advised = advice
			return nil
		}
		advised = advice
		_, err := fmt.Fprintln(f.out, advice)
		return err
	})
}

// draw shows each state in the place of the one before, and how the time goes by.
func (f *Follower) draw(states <-chan *v1alpha1.Release) error {
	ticker := f.clock.NewTicker(time.Second)
	defer ticker.Stop()
	var release *v1alpha1.Release
	for {
		select {
		case next, more := <-states:
			if !more {
				return nil
			}
			release = next
		case <-ticker.C():
		}
		if release == nil {
			continue
		}
		rows := f.screen.Rows()
		if release.Status.Phase.Ended() {
			rows = 0 // it stays, so it may scroll
		}
		if err := f.screen.Draw(lines(release, f.clock.Now(), rows)); err != nil {
			return err
		}
	}
}

// lines are those of a release, in so many rows of a screen at most, 0 for any number.
func lines(release *v1alpha1.Release, now time.Time, rows int) []string {
	advice := adviceFor(release)
	if advice == "" {
		return progress.Lines(release, now, rows)
	}
	const takes = 2
	if rows > 0 {
		rows = max(1, rows-takes)
	}
	return append(progress.Lines(release, now, rows), "", advice)
}

// adviceFor says what somebody who looks on can do for a release to go on.
func adviceFor(release *v1alpha1.Release) string {
	if release.Status.Phase.Ended() {
		return "" // nobody goes on looking
	}
	return progress.Advice(release)
}
