package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// rightsNamed bounds how many missing rights a condition names.
const rightsNamed = 12

// errAnew ends a Runner that is to begin anew at once: it could not begin without rights which the credential has by now, or what it
// has seen is of before a long silence.
var errAnew = errors.New("it is to begin anew")

// watchRights looks which of the rights that syncing takes the credential lacks: a cluster that was joined by an earlier version has
// granted what that needed. While any is missing it asks as often as the cluster is probed, and starts a Runner that waits for them anew
// once they are there; otherwise rights change as rarely as what is served.
func (l *live) watchRights(ctx context.Context) {
	s := l.session
	for ctx.Err() == nil {
		delay := s.manager.DiscoveryInterval
		missing, err := rights.Missing(ctx, l.connection.Client, rights.Syncer())
		switch {
		case err != nil:
			delay = s.manager.ProbeInterval
			klog.FromContext(ctx).V(2).Info("Cannot ask for the rights in the cluster; trying again", "delay", delay, "err", err)
		default:
			if len(missing) > 0 {
				delay = s.manager.ProbeInterval
			}
			if s.setMissing(missing) && len(missing) == 0 && !l.connection.Usage.Current() {
				l.restart()
			}
		}
		pause(ctx, s.manager.Clock, delay)
	}
}

// setMissing notes which rights are missing, and tells whether that has changed.
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
func (l *live) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abort != nil {
		l.abort(errAnew)
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
	if errors.Is(context.Cause(ctx), errAnew) {
		return errAnew
	}
	return err
}

// lacksRights says which rights are missing and how the cluster grants them. The caller holds the lock.
func (s *session) lacksRights() string {
	named := s.missing
	more := ""
	if len(named) > rightsNamed {
		named, more = named[:rightsNamed], fmt.Sprintf(" and %d more", len(s.missing)-rightsNamed)
	}
	return fmt.Sprintf("the credential may not %s%s; joining again grants that: manifold cluster join %s --cluster-kubeconfig FILE",
		strings.Join(named, "; "), more, s.cluster.Name)
}
