package clusters

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

// line stands between us and a cluster, like a firewall that may forget the connections it has.
type line struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	frozen chan struct{} // closed once the connections made so far carry nothing any more
	conns  []net.Conn
}

func lineTo(t *testing.T, target string) *line {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, target: target, frozen: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			frozen := l.frozen
			l.conns = append(l.conns, near, far)
			l.mu.Unlock()
			all.Go(func() { carry(near, far, frozen) })
			all.Go(func() { carry(far, near, frozen) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		for _, c := range l.conns {
			_ = c.Close()
		}
		l.mu.Unlock()
		all.Wait()
	})
	return l
}

// carry hands on what it reads until the line is frozen; then it only reads. An end is told to the other side until then.
func carry(to, from net.Conn, frozen chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-frozen:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			_ = to.Close()
			return
		}
	}
}

// freeze makes the connections that there are carry nothing any more. Nobody is told, and new ones work.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.frozen)
	l.frozen = make(chan struct{})
}

func TestAConnectionThatIsDeadIsNoSilence(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.manager.ProbeInterval = 100 * time.Millisecond
	east := startBelow(t, "uid-1")
	l := lineTo(t, east.server.Listener.Addr().String())
	h.join("east", []byte(strings.ReplaceAll(string(east.kubeconfig()), east.server.URL, "https://"+l.listener.Addr().String())))
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	watches := func() int {
		east.mu.Lock()
		defer east.mu.Unlock()
		return east.watches
	}
	h.eventually("the nodes are watched", 0, func() bool { return watches() == 1 })

	l.freeze()
	h.eventually("the nodes are watched anew", time.Millisecond, func() bool { return watches() == 2 })
	if ready := status.ReadyOf(h.cluster("east").Status); ready.Status != metav1.ConditionTrue || ready.LastTransitionTime.Time != noon {
		t.Errorf("the cluster is %+v", ready)
	}
	if runner.starts != 1 {
		t.Errorf("the syncer was started %d times", runner.starts)
	}
}

func TestAClusterThatReturnsIsReadyOnceItHasBeenSeenAnew(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	h.manager.Fence = func(string) string { return "" }
	east := startBelow(t, "uid-1")
	h.join("east", east.kubeconfig())
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")

	east.set(func(b *below) { b.failing = true })
	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonNotReady, "answers with an error")
	h.eventuallyReady("east", time.Second, metav1.ConditionUnknown, health.ReasonUnreachable, "answers with an error")
	runner.mu.Lock()
	runner.waits = true // the next one
	runner.mu.Unlock()
	east.set(func(b *below) { b.failing, b.readyz = false, http.StatusInternalServerError })
	h.eventuallyReady("east", time.Second, metav1.ConditionFalse, health.ReasonNotReady, "/readyz") // as one that begins
	east.set(func(b *below) { b.readyz = http.StatusOK })
	h.eventuallyReady("east", time.Second, metav1.ConditionUnknown, health.ReasonFenced, "its objects have not been read yet")
	h.eventually("the syncer is started anew", 0, func() bool {
		runner.mu.Lock()
		defer runner.mu.Unlock()
		return runner.starts == 2
	})
	s := h.manager.session("east")
	s.mu.Lock()
	l := s.live
	s.mu.Unlock()
	l.restart() // the one that waits ends
	h.eventuallyReady("east", time.Second, metav1.ConditionTrue, health.ReasonReady, "")
}
