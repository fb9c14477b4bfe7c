package clusters

import (
	"context"
	"errors"
	"slices"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
)

// errAnew ends a Runner that is to begin anew at once: it could not begin without rights which the credential has by now, or what it
// has seen is of before a long silence.
var errAnew = errors.New("it is to begin anew")

// watchRights looks which of the rights that syncing takes the credential lacks: a cluster that was joined by an earlier version has
// granted what that needed. While any is missing it asks as often as the cluster is probed, and starts a Runner that waits for them anew
// once they are there; otherwise rights change as rarely as what is served.
func (l *live) watchRights(ctx context.Context) {
	s := l.session
	for ctx.Err() == nil {
		told := l.learnTelling(ctx)
		delay := s.manager.DiscoveryInterval
		l.learnSurplus(ctx)
		missing, err := rights.Missing(ctx, l.connection.Client, s.neededRights())
		switch {
		case err != nil:
			delay = s.manager.ProbeInterval
			klog.FromContext(ctx).V(2).Info("Cannot ask for the rights in the cluster; trying again", "delay", delay, "err", err)
		default:
			if len(missing) > 0 || !told {
				delay = s.manager.ProbeInterval
			}
			if s.setMissing(missing) && len(missing) == 0 && !l.connection.Usage.Current() {
				l.restart()
			}
		}
		pause(ctx, s.manager.Clock, delay)
	}
}

// neededRights are those that the cluster is to have granted.
func (s *session) neededRights() []rights.Right {
	needed := rights.Syncer()
	if s.manager.allows(s.cluster.Name).Volumes {
		needed = append(needed, rights.Volumes()...)
	}
	if s.manager.allows(s.cluster.Name).Pipelines {
		needed = append(needed, rights.Pipelines()...)
	}
	return needed
}

// allows returns what the admin of a cluster has said to let come along there.
func (m *Manager) allows(cluster string) v1alpha1.ClusterAllows {
	c, err := m.Clusters.Lister().Get(cluster)
	if err != nil {
		return v1alpha1.ClusterAllows{}
	}
	return c.Spec.Allows
}

// joinAgain is the command that brings the rights in a cluster up to date.
func (m *Manager) joinAgain(cluster string) string {
	return handmade.JoinAgain(cluster, m.allows(cluster))
}

// learnTelling learns whether the cluster can be told whose requests are, and returns false as long as it cannot or is not known. Then requests
// go without.
func (l *live) learnTelling(ctx context.Context) bool {
	self, untold, err := rights.Tells(ctx, l.connection.Client)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot ask whether the cluster can be told whose requests are; trying again", "err", err)
		return false
	}
	l.connection.ActAs(self)
	s := l.session
	s.mu.Lock()
	changed := s.untold != untold
	s.untold = untold
	s.mu.Unlock()
	if changed {
		s.manager.status.Add(s.cluster.Name)
	}
	return untold == ""
}

// setMissing notes which rights are missing, and reports whether that has changed.
func (s *session) setMissing(missing []string) bool {
	s.mu.Lock()
	changed := !slices.Equal(s.missing, missing)
	s.missing = missing
	s.mu.Unlock()
	if changed {
		s.manager.status.Add(s.cluster.Name)
	}
	return changed
}

// restart ends the Runner, so that it is started anew at once.
func (l *live) restart() { l.end(errAnew) }

// end ends the Runner's present run for a reason.
func (l *live) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abort != nil {
		l.abort(why)
	}
}

// runOnce runs the Runner until it ends or restart is called.
func (l *live) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	l.abort = cancel
	l.mu.Unlock()
	err := l.session.manager.Runner.Run(ctx, l.connection)
	exceeded := new(bounds.ExceededError)
	if cause := context.Cause(ctx); errors.Is(cause, errAnew) || errors.As(cause, &exceeded) {
		return cause
	}
	return err
}

// learnSurplus learns whether the credential has more rights than are needed, as one has that an earlier version made.
func (l *live) learnSurplus(ctx context.Context) {
	surplus, err := rights.Excess(ctx, l.connection.Client)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot ask for rights that are not needed; trying again", "err", err)
		return
	}
	s := l.session
	s.mu.Lock()
	changed := s.surplus != surplus
	s.surplus = surplus
	s.mu.Unlock()
	if changed {
		s.manager.status.Add(s.cluster.Name)
	}
}
