package clusters

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

const (
	// A Runner that fails is started again after firstRestart, then after twice as long each time, up to slowestRestart. One that
	// ran for steadyRun before it failed starts over at firstRestart.
	firstRestart   = time.Second
	slowestRestart = time.Minute
	steadyRun      = time.Minute
)

// live is what runs while a session is connected: the watch of nodes, discovery and the Runner.
type live struct {
	session    *session
	connection *connection.Connection
	since      time.Time
	informer   cache.SharedIndexInformer
	synced     cache.InformerSynced // nil if nodes cannot be watched
	dirty      atomic.Bool          // nodes have changed since nodesChanged was asked last
	cancel     context.CancelFunc
	group      *errgroup.Group

	mu    sync.Mutex
	abort context.CancelCauseFunc // ends the Runner's present run; nil before the first
}

func startLive(ctx context.Context, s *session, c *connection.Connection) *live {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{session: s, connection: c, since: s.manager.Clock.Now(), cancel: cancel}
	l.group, ctx = errgroup.WithContext(ctx)
	c.Budget = bounds.NewBudget(s.manager.MaxObjects, s.manager.MaxBytes, l.exceeds)
	l.watchNodes(ctx)
	l.watchDefinitions(ctx)
	l.group.Go(func() error { l.discover(ctx); return nil })
	l.group.Go(func() error { l.keepToken(ctx); return nil })
	if s.manager.Runner != nil {
		l.group.Go(func() error { l.runRunner(ctx); return nil })
		l.group.Go(func() error { l.watchRights(ctx); return nil })
	}
	return l
}

// stop ends everything and waits for it.
func (l *live) stop() {
	l.cancel()
	_ = l.group.Wait() // none of them returns an error
	l.connection.Close()
}

// watchNodes starts the watch of the cluster's nodes.
func (l *live) watchNodes(ctx context.Context) {
	name := l.connection.Name
	logger := klog.FromContext(ctx)
	gate := l.connection.Budget.Gate()
	l.informer = coreinformers.NewFilteredNodeInformer(l.connection.Client, 0, cache.Indexers{}, gate.Tweak)
	// The informer has not been started, so none of these can fail.
	_ = l.informer.SetTransform(gate.Transform(capacity.TrimNode))
	_ = gate.Watch(l.informer)
	_ = l.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Watch of nodes interrupted", "err", err)
	})
	changed := func() {
		l.dirty.Store(true)
		l.session.manager.status.Add(name)
	}
	registration, err := l.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
		UpdateFunc: func(last, next any) {
			if !countsAlike(last.(*corev1.Node), next.(*corev1.Node)) {
				changed()
			}
		},
	})
	if err != nil {
		logger.Error(err, "Cannot watch nodes")
		return
	}
	l.synced = registration.HasSynced
	l.group.Go(func() error { l.informer.RunWithContext(ctx); return nil })
	l.group.Go(func() error {
		if cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
			changed() // a cluster without nodes has no events to tell of it
		}
		return nil
	})
}

// countsAlike reports whether two trimmed nodes differ in nothing but their versions, as after a kubelet's report of its health.
func countsAlike(last, next *corev1.Node) bool {
	a, b := *last, *next
	a.ResourceVersion, b.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(&a, &b)
}

// nodesChanged tells once whether the nodes must be summed up again. It is false while not all are known.
func (l *live) nodesChanged() bool {
	return l.synced != nil && l.synced() && l.dirty.Swap(false)
}

func (l *live) nodes() []*corev1.Node {
	items := l.informer.GetStore().List()
	nodes := make([]*corev1.Node, 0, len(items))
	for _, item := range items {
		if node, ok := item.(*corev1.Node); ok {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// discover reads the version and served kinds now, when asked to, and now and then: beside definitions of custom resources, which are
// watched, what a cluster serves changes rarely (an upgrade, an aggregated API), no single watch would show all of it, and it takes two
// requests.
func (l *live) discover(ctx context.Context) {
	s := l.session
	for ctx.Err() == nil {
		delay := s.manager.DiscoveryInterval
		version, kinds, err := discover(l.connection.Client.Discovery(), l.lastKinds())
		if err == nil {
			s.setDiscovered(version, kinds)
		} else {
			delay = s.manager.ProbeInterval
			if exceeded := new(bounds.ExceededError); errors.As(err, &exceeded) {
				s.exceeds(exceeded)
			}
			klog.FromContext(ctx).Error(err, "Cannot read what the cluster serves; trying again", "delay", delay)
		}
		timer := s.manager.Clock.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-s.refresh:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (l *live) lastKinds() []string {
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	return l.session.kinds
}

// runRunner keeps the Runner running until ctx ends.
func (l *live) runRunner(ctx context.Context) {
	clock := l.session.manager.Clock
	usage := l.connection.Usage
	delay := firstRestart
	usage.Begin()
	for ctx.Err() == nil {
		began := clock.Now()
		err := l.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errAnew) {
			delay = firstRestart
			usage.Begin()
			continue
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		switch exceeded := new(bounds.ExceededError); {
		case errors.As(err, &exceeded):
			delay = slowestRestart // it has read much to find that out
		case clock.Since(began) >= steadyRun:
			delay = firstRestart
		}
		klog.FromContext(ctx).Error(err, "The syncer has stopped; starting it again", "delay", delay)
		usage.Begin() // from here on, as the condition SyncerRunning shows the failure until the pods have been read again
		l.session.setRunnerErr(err)
		pause(ctx, clock, delay)
		delay = min(2*delay, slowestRestart)
	}
}

// syncerCondition reports whether the syncer runs. usage is that of the live connection, nil if there is none. The caller holds the lock.
func (s *session) syncerCondition(usage *capacity.Usage) *metav1.Condition {
	if s.manager.Runner == nil {
		return nil
	}
	return status.Syncer{
		Connected: usage != nil, Current: usage != nil && usage.Current(),
		Heard:   s.history.Last != nil && s.history.Last.Reason != health.ReasonUnreachable,
		Missing: s.missing, Exceeded: s.exceeded(), Surplus: s.surplus, Untold: s.untold, Failed: s.runnerErr,
		JoinAgain: s.manager.joinAgain(s.cluster.Name),
	}.Condition()
}
