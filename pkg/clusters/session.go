package clusters

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// firstRetry is how soon a cluster that does not answer is tried again. The delay doubles up to the probe interval, so that one
// that restarts is back soon.
const firstRetry = time.Second

// fenceLook is how often a cluster that is fenced is looked at again. It takes as long as a pod takes to end.
const fenceLook = 500 * time.Millisecond

// usageDelay gathers the changes of pods that come in a burst. Placement does not wait for it: it reads Usage itself.
const usageDelay = 200 * time.Millisecond

// session is the dealing with one cluster by one credential. It ends when either changes, but for a token that follows another one.
type session struct {
	manager *Manager
	cluster *v1alpha1.Cluster      // as it was when the session began
	digest  string                 // identifies the credential but for its token
	whole   string                 // identifies it with its token; for syncConnection alone
	dialled *connection.Connection // nil if the credential cannot be used
	refused string                 // the token of a credential that cannot be used
	beat    *heartbeat
	cancel  context.CancelFunc
	done    chan struct{}
	refresh chan struct{} // asks for another discovery

	usageDirty atomic.Bool // a look at the pods' requests is due
	excess     atomic.Pointer[excess]

	mu        sync.Mutex
	uid       string // of the cluster that joined, once known
	history   health.History
	signs     signs
	wellAt    time.Time // when the cluster said last that all is well
	live      *live
	version   string
	kinds     []string
	nodes     *capacity.Nodes
	runnerErr error
	missing   []string // rights that syncing takes and the credential lacks
	renewErr  error    // why the token could not be renewed when that was tried last
	untold    string   // the right that telling whose requests are takes, if the credential lacks it
	surplus   string   // what the credential may do and need not
}

// run probes the cluster until ctx ends, and keeps the live part running as long as the right cluster answers.
func (s *session) run(ctx context.Context) {
	defer s.disconnect("the connection is being renewed, try again in a moment")
	backoff := firstRetry
	for ctx.Err() == nil {
		began, stop := s.manager.Clock.Now(), s.noteLate()
		report := s.probe(ctx)
		stop()
		if ctx.Err() != nil {
			return
		}
		if report.Heard() {
			s.noteSign(began)
		} else {
			s.noteSilence()
		}
		s.act(ctx, report)
		s.manager.status.Add(s.cluster.Name)
		delay := s.manager.ProbeInterval
		if report.OK() {
			backoff = firstRetry
		} else {
			delay = min(backoff, delay)
			backoff = 2 * delay // bounded with the delay: doubled for ever, it would overflow within minutes
		}
		s.rest(ctx, delay)
	}
}

func (s *session) probe(parent context.Context) health.Report {
	began := time.Now() // as the network does, which knows no other clock
	ctx, cancel := context.WithTimeout(parent, s.manager.ProbeInterval)
	defer cancel()
	s.mu.Lock()
	want := s.uid
	s.mu.Unlock()
	host := s.dialled.Host.String()
	report := health.Probe(ctx, s.dialled.Client, s.cluster.Name, host, want)
	if !report.Heard() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		report = s.probeAnew(parent, report, want, began)
	}
	if report.UID == "" || report.Reason == health.ReasonDifferentCluster {
		return report
	}
	if other := s.manager.olderTwin(s.cluster, report.UID); other != "" {
		return health.Duplicate(host, report.UID, other)
	}
	return report
}

// probeAnew asks once more over a new connection, when nothing was heard over the one that all requests share. If that is answered, the
// cluster is well and the connection is dead, of which nobody has told us: everything that waits there is ended, the watches among it. One
// over which something has come since then is only busy.
func (s *session) probeAnew(ctx context.Context, silent health.Report, want string, began time.Time) health.Report {
	ctx, cancel := context.WithTimeout(ctx, s.manager.ProbeInterval)
	defer cancel()
	client, done := s.dialled.Anew()
	defer done()
	report := health.Probe(ctx, client, s.cluster.Name, s.dialled.Host.String(), want)
	if !report.Heard() {
		return silent
	}
	if !s.dialled.CarriedSince(began) {
		klog.FromContext(ctx).Info("The cluster answers over a new connection and not over the one that it had; closing that")
		s.dialled.HangUp()
	}
	return report
}

// act takes note of a report. The connection is made once the right cluster has answered, even if it is not ready, and ends only
// if another one does: through a silence, requests and watches recover by themselves, and after a long one the Runner begins anew.
func (s *session) act(ctx context.Context, report health.Report) {
	now := s.manager.Clock.Now()
	s.mu.Lock()
	recovered := report.OK() && s.history.Last != nil && !s.history.Last.OK()
	s.history = s.history.Record(report, now)
	back := s.returned(recovered, now)
	wrong := report.Reason == health.ReasonDifferentCluster || report.Reason == health.ReasonDuplicate
	if !wrong && s.uid == "" {
		s.uid = report.UID
	}
	if s.live != nil {
		s.live.connection.Answers.Note(report.UID != "")
	}
	s.mu.Unlock()

	if back != nil {
		s.dialled.HangUp()
		back.restart()
	}
	switch {
	case wrong:
		s.disconnect(report.Message)
	case report.UID != "":
		s.connect(ctx, types.UID(report.UID))
		if err := s.renew(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot store that the cluster was heard")
		}
	default:
		s.explainAbsence(report.Message)
	}
	if recovered {
		// It may be another version that has come back.
		signal(s.refresh)
	}
}

// returned returns what runs for a cluster that is well again after more than the grace period, or nil. It has to begin anew: its watches
// are waiting to be tried again, for up to a minute, and show what was there before. Until it has, nothing is concluded from that, and
// the cluster is not ready. The caller holds the lock.
func (s *session) returned(recovered bool, now time.Time) *live {
	last := s.wellAt
	if s.history.Last.OK() {
		s.wellAt = now
	}
	if !recovered || s.live == nil || last.IsZero() || now.Sub(last) <= s.manager.GracePeriod {
		return nil
	}
	s.live.connection.Usage.Begin()
	return s.live
}

func (s *session) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.manager.ProbeInterval)
	defer cancel()
	return s.beat.renew(ctx, s.manager.Clock.Now())
}

// explainAbsence tells the registry why there is no connection yet.
func (s *session) explainAbsence(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.manager.Registry.withdraw(s.cluster.Name, why)
	}
}

// connect publishes the connection and starts what lives on it, unless that has been done.
func (s *session) connect(ctx context.Context, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		return
	}
	c := *s.dialled
	c.UID = uid
	c.Usage, c.Answers = capacity.NewUsage(s.usageChanged), connection.NewAnswers()
	c.Classes = connection.NewClasses(func() { s.manager.status.Add(s.cluster.Name) })
	s.live = startLive(ctx, s, &c)
	s.manager.Registry.publish(&c)
}

// usageChanged is called for every pod that comes or goes, so it only sees to it that somebody looks soon. A sum that is complete
// now is looked at now, since the first Ready waits for it.
func (s *session) usageChanged(synced bool) {
	if synced {
		s.manager.status.Add(s.cluster.Name)
		return
	}
	if !s.usageDirty.Swap(true) {
		s.manager.status.AddAfter(s.cluster.Name, usageDelay)
	}
}

// disconnect withdraws the connection, and ends and waits for what lives on it.
func (s *session) disconnect(why string) {
	s.mu.Lock()
	l := s.live
	s.live = nil
	s.nodes, s.runnerErr, s.missing, s.untold, s.surplus = nil, nil, nil, "", ""
	s.mu.Unlock()
	s.manager.Registry.withdraw(s.cluster.Name, why)
	if l != nil {
		l.stop()
	}
}

// observe returns what is known now, and in how long silence alone may change it.
func (s *session) observe(last v1alpha1.ClusterStatus) (seen status.Observation, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.manager.Clock.Now()
	seen.Ready, again = health.Ready(status.ReadyOf(last), s.history, s.manager.GracePeriod, now)
	if fenced := s.fenced(status.ReadyOf(last), seen.Ready); fenced != nil {
		seen.Ready, again = fenced, fenceLook
	}
	if full := s.full(seen.Ready); full != nil {
		seen.Ready, again = full, excessLook
	}
	seen.UID, seen.Version, seen.Kinds = s.uid, s.version, s.kinds
	seen.Answered, seen.Silent = !s.signs.last.IsZero(), s.signs.silent
	s.observeCredential(&seen, now)
	if s.live == nil {
		// One that has just answered is about to be connected, and tells what it has then.
		seen.Settled = s.history.Last == nil || !s.history.Last.OK()
		seen.Syncer = s.syncerCondition(nil)
		return seen, again
	}
	usage := s.live.connection.Usage
	s.usageDirty.Store(false) // before the sums are read, so that no change is missed
	if requested, complete := usage.Snapshot(); complete {
		seen.Requested = requested
	}
	if s.live.nodesChanged() {
		sum := capacity.SumNodes(s.live.nodes())
		s.nodes = &sum
	}
	seen.Nodes, seen.Classes = s.nodes, s.live.connection.Classes.Get()
	seen.Syncer = s.syncerCondition(usage)
	complete := seen.Nodes != nil && seen.Kinds != nil && (s.manager.Runner == nil || seen.Requested != nil)
	seen.Settled = complete || now.Sub(s.live.since) >= s.manager.SettleTime
	return seen, again
}

// fenced returns the Ready condition of a cluster that answers again and must first give up what was moved elsewhere in its silence, or
// nil. It may have said that it is not ready since then, as an API server does that begins. One whose syncer fails is not held: there its own condition tells. The caller holds the lock.
func (s *session) fenced(last, next *metav1.Condition) *metav1.Condition {
	if s.manager.Fence == nil || s.runnerErr != nil || len(s.missing) > 0 || last == nil || next == nil ||
		last.Status == metav1.ConditionTrue || next.Status != metav1.ConditionTrue {
		return nil
	}
	why := s.manager.Fence(s.cluster.Name)
	if s.live == nil || !s.live.connection.Usage.Current() {
		why = "its objects have not been read yet"
	}
	if why == "" {
		return nil
	}
	return &metav1.Condition{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Reason: health.ReasonFenced,
		Message: "the cluster answers again, but " + why}
}

// nodeSums returns what is known of the cluster's own nodes, nil if nothing is.
func (s *session) nodeSums() *capacity.Nodes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes
}

func (s *session) setDiscovered(version string, kinds []string) {
	s.mu.Lock()
	s.version, s.kinds = version, kinds
	s.mu.Unlock()
	s.manager.status.Add(s.cluster.Name)
}

func (s *session) setRunnerErr(err error) {
	s.mu.Lock()
	s.runnerErr = err
	s.mu.Unlock()
	s.manager.status.Add(s.cluster.Name)
}

// pause waits until the delay has passed or ctx ends.
func pause(ctx context.Context, c clock.Clock, delay time.Duration) {
	timer := c.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// signal wakes whoever receives from c, a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
