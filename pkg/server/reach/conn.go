package reach

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"github.com/manifold-dev/manifold/internal/text"
)

// failureWait is how long a connection that ends at its beginning waits to hear why.
const failureWait = time.Second

// conn is a connection to a port of a pod.
type conn struct {
	below   net.Conn
	streams httpstream.Connection
	data    httpstream.Stream
	address podAddr
	release func()

	// failed is closed when no more comes of what the cluster has to say about the port, which is failure then.
	failed    chan struct{}
	failure   string
	listening sync.WaitGroup

	heard     bool // by Read alone, which is not called concurrently
	closing   sync.Once
	mu        sync.Mutex
	deadlines [2]*time.Timer // of reading and writing
	expired   bool
}

// newConn takes over all that it is given.
func newConn(below net.Conn, streams httpstream.Connection, failures, data httpstream.Stream, to podPort, cluster string, release func()) *conn {
	c := &conn{
		below: below, streams: streams, data: data, release: release,
		address: podAddr{to, cluster}, failed: make(chan struct{}),
	}
	c.listening.Go(func() {
		c.failure = refusalOf(failures)
		close(c.failed)
		if c.failure != "" {
			_ = c.data.Reset() // wakes Read, which tells
		}
	})
	return c
}

// refusalOf reads what a cluster says about a port until the stream for that ends, "" if nothing came.
func refusalOf(failures io.Reader) string {
	said, _ := io.ReadAll(io.LimitReader(failures, maxRefusal)) // what came until it broke is all there is
	return text.Line(string(said), maxShown)
}

// Read implements net.Conn. If nothing was ever read, the error says why the cluster could not connect to the port.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	c.heard = c.heard || n > 0
	if err == nil {
		return n, nil
	}
	if c.timedOut() {
		return n, os.ErrDeadlineExceeded
	}
	if why := c.why(); why != "" {
		return n, fmt.Errorf("%s: %s", c.address, why)
	}
	return n, err
}

// why is what the cluster said about a connection that has ended.
func (c *conn) why() string {
	if !c.heard {
		timer := time.NewTimer(failureWait)
		defer timer.Stop()
		select {
		case <-c.failed:
		case <-timer.C:
		}
	}
	select {
	case <-c.failed:
		return c.failure
	default:
		return ""
	}
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.data.Write(p)
	if err != nil && c.timedOut() {
		return n, os.ErrDeadlineExceeded
	}
	return n, err
}

// Close implements net.Conn. It ends whatever reads and writes, and returns once all that belongs to the connection has ended.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.stopTimers()
		// The connection first: resetting streams writes to it, which may block.
		c.below.Close()
		_ = c.streams.Close() // whose goodbye has nowhere to go
		<-c.streams.CloseChan()
		c.listening.Wait()
		c.release()
	})
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.below.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.address }

// SetDeadline implements net.Conn. A stream knows no deadlines, so the connection is closed when one has passed, for good.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn, see SetDeadline.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setTimer(0, t) }

// SetWriteDeadline implements net.Conn, see SetDeadline.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setTimer(1, t) }

func (c *conn) setTimer(which int, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadlines[which] != nil {
		c.deadlines[which].Stop()
		c.deadlines[which] = nil
	}
	if !t.IsZero() {
		c.deadlines[which] = time.AfterFunc(time.Until(t), c.expire)
	}
	return nil
}

// expire ends a connection whose deadline has passed. What it consists of is cleared away by Close.
func (c *conn) expire() {
	c.mu.Lock()
	c.expired = true
	c.mu.Unlock()
	c.below.Close()
}

func (c *conn) stopTimers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, timer := range c.deadlines {
		if timer != nil {
			timer.Stop()
			c.deadlines[i] = nil
		}
	}
}

func (c *conn) timedOut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// podAddr is the address of a port of a pod.
type podAddr struct {
	podPort
	cluster string
}

func (podAddr) Network() string  { return "port-forward" }
func (a podAddr) String() string { return a.describe(a.cluster) }
