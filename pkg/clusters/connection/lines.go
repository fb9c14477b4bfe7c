package connection

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/connrotation"
)

// lines are the TCP connections that carry the requests to a cluster.
type lines struct {
	*connrotation.Dialer
	// heard is when anything came over any of them, in nanoseconds.
	heard *atomic.Int64
}

func newLines(dial connrotation.DialFunc) lines {
	heard := &atomic.Int64{}
	return lines{connrotation.NewDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return listened{conn, heard}, nil
	}), heard}
}

// carriedSince reports whether anything has come over any of them since then. Then they are not dead, though they may be busy.
func (l lines) carriedSince(then time.Time) bool { return l.heard.Load() > then.UnixNano() }

// listened is a connection that tells when something comes.
type listened struct {
	net.Conn
	heard *atomic.Int64
}

// Read implements net.Conn.
func (c listened) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}
