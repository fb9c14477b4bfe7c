package datapath

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Proxy is a SOCKS5 proxy whose connections are those of a Client. A Go program that has its URL as HTTP_PROXY reaches what the client
// reaches, connection by connection.
//
// It is no HTTP proxy, since Go's clients tell such a one the Host header of a request, and not where it is to go: a gateway that hands on
// the header of its own client would never arrive.
type Proxy struct {
	URL string

	listener net.Listener
	cancel   context.CancelFunc
	serving  sync.WaitGroup
}

// StartProxy starts a proxy for a program that is where the client is. Stop ends it.
func (c *Client) StartProxy() (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy into cluster %q: %w", c.from.Cluster, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{URL: "socks5://" + listener.Addr().String(), listener: listener, cancel: cancel}
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if ctx.Err() != nil {
				if err == nil {
					conn.Close()
				}
				return
			}
			if err != nil {
				wait(ctx, acceptAgain) // there is no file for it at the moment; callers wait as long
				continue
			}
			p.serving.Go(func() { serve(ctx, c, conn) })
		}
	})
	return p, nil
}

// acceptAgain is after what time a connection is taken that could not be taken.
const acceptAgain = 10 * time.Millisecond

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Stop ends the proxy and breaks its connections.
func (p *Proxy) Stop() error {
	p.cancel()
	err := p.listener.Close()
	p.serving.Wait()
	return err
}

// serve connects a caller with what it asks for, and copies until either side closes or the context ends.
func serve(ctx context.Context, c *Client, here net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer here.Close()
	defer context.AfterFunc(ctx, func() { here.Close() })()
	in := bufio.NewReader(here)
	target, err := greet(in, here)
	if err != nil {
		return // it speaks another protocol, or has gone
	}
	there, err := c.DialContext(ctx, "tcp", target)
	if _, failed := here.Write(replyTo(err)); err != nil || failed != nil {
		if err == nil {
			there.Close()
		}
		return
	}
	defer there.Close()
	defer context.AfterFunc(ctx, func() { there.Close() })()
	var both sync.WaitGroup
	// Readers and writers without any more: the kernel's own way to copy takes a pipe for each, which is two files, and gateways keep hundreds of idle
	// connections.
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{struct{ io.Writer }{there}, struct{ io.Reader }{in}}, {struct{ io.Writer }{here}, struct{ io.Reader }{there}}} {
		both.Go(func() {
			defer cancel()
			_, _ = io.CopyBuffer(way.to, way.from, make([]byte, copied)) // the other way ends with this one
		})
	}
	both.Wait()
}

// copied is how many bytes are copied at a time. Answers are small.
const copied = 4 << 10

// SOCKS5, RFC 1928.
const (
	version     = 5
	withoutAuth = 0
	connect     = 1
	toIPv4      = 1
	toName      = 3
	toIPv6      = 4
)

// greet reads what a caller wants to be connected with.
func greet(in io.Reader, out io.Writer) (target string, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil || head[0] != version {
		return "", errors.Join(err, errors.New("no SOCKS5"))
	}
	if _, err := io.CopyN(io.Discard, in, int64(head[1])); err != nil {
		return "", err
	}
	if _, err := out.Write([]byte{version, withoutAuth}); err != nil {
		return "", err
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(in, request); err != nil || request[1] != connect {
		return "", errors.Join(err, errors.New("no request to connect"))
	}
	host, err := readHost(in, request[3])
	if err != nil {
		return "", err
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(in, port); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), nil
}

func readHost(in io.Reader, kind byte) (string, error) {
	length := 0
	switch kind {
	case toIPv4:
		length = 4
	case toIPv6:
		length = 16
	case toName:
		size := make([]byte, 1)
		if _, err := io.ReadFull(in, size); err != nil {
			return "", err
		}
		length = int(size[0])
	default:
		return "", fmt.Errorf("address of kind %d", kind)
	}
	host := make([]byte, length)
	if _, err := io.ReadFull(in, host); err != nil {
		return "", err
	}
	if ip, ok := netip.AddrFromSlice(host); ok && kind != toName {
		return ip.String(), nil
	}
	return string(host), nil
}

// replyTo says how connecting ended.
func replyTo(err error) []byte {
	const done, failed, unreachable, refused = 0, 1, 4, 5
	code := byte(done)
	var dns *net.DNSError
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNREFUSED):
		code = refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.As(err, &dns):
		code = unreachable
	default:
		code = failed
	}
	return []byte{version, code, 0, toIPv4, 0, 0, 0, 0, 0, 0}
}
