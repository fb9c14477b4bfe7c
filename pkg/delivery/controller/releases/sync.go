package releases

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
)

var everything = labels.Everything()

// situation are the releases of an application.
type situation struct {
	// app is the application as the last release has it, and own as it is itself: without what the file of a revision says.
	app, own *v1alpha1.Application
	// running is the one that is under way, last the one that has begun last, running or not, and waiting are those that have not begun, from the
	// oldest to the newest. Either may be missing.
	running, last *v1alpha1.Release
	waiting       []*v1alpha1.Release
	// lacking are those of waiting whose revision is not there, by name. They keep nobody waiting.
	lacking map[string]lack
}

// sync takes the releases of an application as far as they get now.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) error {
	app, err := c.applications.Applications(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		c.pace.note(name, 0)
		if there, err := c.applications.List(everything); err == nil { // a cache always lists
			c.memories.keep(there)
		}
		return nil
	}
	if err != nil || app.DeletionTimestamp != nil {
		return err
	}
	s, err := c.gather(app)
	if err != nil {
		return err
	}
	if s.lacking, err = c.revisions.lacking(ctx, s); err != nil {
		return err
	}
	turn := turnOf(s)
	if s.last != nil {
		s.app = c.revisions.effective(app, s.last)
	}
	if s.last != nil {
		release, err := c.continues(ctx, s, turn)
		if err != nil {
			return err
		}
		switch ended := release.Status.Phase.Ended(); {
		case !ended:
			return c.wait(ctx, s, turn)
		case s.running != nil:
			c.queue.Add(name) // the next one may begin
			return nil
		}
	}
	if err := c.wait(ctx, s, turn); err != nil || turn.Begin == "" {
		return err
	}
	for _, release := range s.waiting {
		if release.Name == turn.Begin {
			s.app = app
			return c.begin(ctx, s, release)
		}
	}
	return nil
}

// gather finds the releases of an application. Of those that were written it takes what was written.
func (c *Controller) gather(app *v1alpha1.Application) (situation, error) {
	s := situation{app: app, own: app}
	found, err := c.releases.ByIndex(byApplication, cache.MetaObjectToName(app).String())
	if err != nil {
		return s, fmt.Errorf("list the releases of Application %s/%s: %w", app.Namespace, app.Name, err)
	}
	for _, obj := range found {
		release := obj.(*v1alpha1.Release)
		if latest, exists, err := c.written.GetByKey(release.Namespace + "/" + release.Name); err == nil && exists {
			if own := latest.(*v1alpha1.Release); own.UID == release.UID {
				release = own
			}
		}
		switch phase := release.Status.Phase; {
		case release.Status.Sequence == 0 && !phase.Ended():
			s.waiting = append(s.waiting, release)
		case release.Status.Sequence == 0:
		case s.last == nil || release.Status.Sequence > s.last.Status.Sequence:
			s.last = release
		}
	}
	if s.last != nil && !s.last.Status.Phase.Ended() {
		s.running = s.last
	}
	slices.SortFunc(s.waiting, func(a, b *v1alpha1.Release) int {
		return cmp.Or(v1alpha1.CompareMade(a, b), cmp.Compare(a.Name, b.Name))
	})
	return s, nil
}

// turnOf says what happens to the releases of an application.
func turnOf(s situation) planner.Turn {
	var running *planner.Running
	if s.running != nil {
		running = &planner.Running{Request: requestOf(s.running), RollingBack: s.running.Status.Phase == v1alpha1.ReleaseRollingBack}
	}
	var waiting []planner.Request
	for _, release := range s.waiting {
		if _, lacks := s.lacking[release.Name]; !lacks {
			waiting = append(waiting, requestOf(release))
		}
	}
	concurrency := cmp.Or(string(s.app.Spec.Trigger.Concurrency), planner.Queue)
	return planner.Next(running, waiting, concurrency, s.app.Spec.Revision, s.app.Spec.Suspend)
}

func requestOf(release *v1alpha1.Release) planner.Request {
	return planner.Request{Name: release.Name, Revision: release.Spec.Revision, Person: release.Spec.TriggeredBy.ByPerson()}
}

// wait says of the releases that do not begin what they wait for, or that they never will.
func (c *Controller) wait(ctx context.Context, s situation, turn planner.Turn) error {
	for _, release := range s.waiting {
		next := release.Status.DeepCopy()
		why, superseded := turn.Superseded[release.Name]
		lack, lacks := s.lacking[release.Name]
		switch cancel := cancelled(release); {
		case cancel != "":
			finish(next, c.Clock.Now(), v1alpha1.ReleaseCancelled, "cancelled before it began by "+delivery.Said(cancel))
		case lacks && lack.ever:
			finish(next, c.Clock.Now(), v1alpha1.ReleaseFailed, delivery.Said(lack.why))
		case lacks:
			next.Phase, next.Message = v1alpha1.ReleasePending, delivery.Said(lack.why)
		case superseded:
			finish(next, c.Clock.Now(), v1alpha1.ReleaseSuperseded, why)
		case release.Name == turn.Begin && !turn.Cancel:
			continue
		default:
			next.Phase, next.Message = v1alpha1.ReleasePending, cmp.Or(turn.Waits, "waiting for the release that runs")
		}
		if _, err := c.write(ctx, s.app, release, *next); err != nil {
			return err
		}
	}
	return nil
}

// cancelled is who has cancelled a release, "" if nobody has.
func cancelled(release *v1alpha1.Release) string {
	for _, request := range release.Status.Requests {
		if request.Type == v1alpha1.RequestCancel {
			return request.User
		}
	}
	return ""
}
