package clusters

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// quiet is how long nothing may come from a cluster before it is asked for a sign of life, and signPatience how long it may take to give one.
	// What comes twice in a row and the patience together are less than ten seconds, within which a cluster that is dead is to be shown as that.
	quiet        = 2500 * time.Millisecond
	signPatience = 3 * time.Second
)

// signs are what is known of a cluster's life by anything that comes from it. They are for those who look: what follows from silence waits for
// probes and the grace period.
type signs struct {
	// last is when the cluster was known to answer last, zero if it never was.
	last time.Time
	// silent is since when it does not, zero while it does.
	silent time.Time
}

// rest waits until it is time for the next probe, which it is early if the cluster gives no sign of life.
func (s *session) rest(ctx context.Context, delay time.Duration) {
	clock := s.manager.Clock
	for end := clock.Now().Add(delay); ctx.Err() == nil; {
		left, began, at := end.Sub(clock.Now()), time.Now(), clock.Now()
		if left <= 0 {
			return
		}
		pause(ctx, clock, min(left, quiet))
		if left <= quiet || s.isSilent() {
			continue // the next probe tells
		}
		if !s.dialled.CarriedSince(began) {
			at = clock.Now()
			if !s.alive(ctx) {
				s.noteSilence()
				return
			}
		}
		s.noteSign(at)
	}
}

// alive asks the cluster for what takes nothing to answer and everybody may read. Whatever it answers, it does.
func (s *session) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, signPatience)
	defer cancel()
	_, err := s.dialled.Client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

func (s *session) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.signs.silent.IsZero()
}

// noteSign takes down that the cluster has answered.
func (s *session) noteSign(at time.Time) {
	s.mu.Lock()
	was := s.signs
	s.signs = signs{last: at}
	s.mu.Unlock()
	if !was.silent.IsZero() {
		s.manager.status.Add(s.cluster.Name)
	}
}

// noteSilence takes down that the cluster does not answer.
func (s *session) noteSilence() {
	s.mu.Lock()
	news := s.signs.silent.IsZero()
	if news {
		s.signs.silent = s.signs.last
		if s.signs.last.IsZero() {
			s.signs.silent = s.manager.Clock.Now()
		}
	}
	s.mu.Unlock()
	if news {
		s.manager.status.Add(s.cluster.Name)
	}
}

// noteLate takes down that the cluster does not answer, when it has had time enough to. One that was never heard is only made known by a probe.
func (s *session) noteLate() (stop func() bool) {
	return time.AfterFunc(signPatience, func() {
		s.mu.Lock()
		heard := !s.signs.last.IsZero()
		s.mu.Unlock()
		if heard {
			s.noteSilence()
		}
	}).Stop
}
