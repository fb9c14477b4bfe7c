package clusters

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

const (
	// excessTold is how long it is told that a cluster went beyond a bound. Whatever has done it tries again within a minute.
	excessTold = 3 * time.Minute
	// excessLook is how often a cluster that is kept from being ready by that is looked at.
	excessLook = 5 * time.Second
)

// excess is that a cluster went beyond a bound.
type excess struct {
	err error
	at  time.Time
}

// exceeds takes note that the cluster went beyond a bound. It is called wherever that is found out, with locks held, so it takes none of
// the session's own.
func (s *session) exceeds(err error) {
	now := s.manager.Clock.Now()
	last := s.excess.Swap(&excess{err, now})
	if last == nil || last.err.Error() != err.Error() || now.Sub(last.at) > excessLook {
		s.manager.status.Add(s.cluster.Name)
		s.manager.status.AddAfter(s.cluster.Name, excessTold+excessLook)
	}
}

// exceeded returns by what the cluster went beyond a bound of late, or nil.
func (s *session) exceeded() error {
	last := s.excess.Load()
	if last == nil || s.manager.Clock.Since(last.at) > excessTold {
		return nil
	}
	return last.err
}

// exceeds takes note that there is more than may be kept of the cluster, and ends the Runner: it must not take what is missing for gone.
func (l *live) exceeds(err error) {
	l.session.exceeds(err)
	l.end(err)
}

// full returns the Ready condition of a cluster that would be ready if its syncer were not kept from seeing what it has, or nil: nothing new
// is to be placed there, and what is there stays. The caller holds the lock.
func (s *session) full(ready *metav1.Condition) *metav1.Condition {
	err := s.exceeded()
	if err == nil || ready == nil || ready.Status != metav1.ConditionTrue || s.manager.Runner == nil || s.live == nil || s.live.connection.Usage.Current() {
		return nil
	}
	return &metav1.Condition{Type: v1alpha1.ClusterReady, Status: metav1.ConditionFalse, Reason: health.ReasonBounds,
		Message: "the cluster answers, but its objects cannot be read: " + err.Error()}
}
