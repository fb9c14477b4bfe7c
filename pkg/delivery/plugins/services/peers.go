package services

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"
)

// guarded is a listener that takes connections of one user's processes alone. Everybody on the machine reaches the loopback interface, and a plugin is
// believed what it says because it says so at its own address.
type guarded struct {
	net.Listener
	user   func(plugin string) (uid uint32, known bool)
	plugin string
	// tells of those who are refused, not each of them.
	tells *rate.Sometimes
}

// Accept returns the next connection of the user.
func (g guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		want, got := g.wanted(), uint64(0)
		if got, err = peer(conn); err == nil && got == want {
			return conn, nil
		}
		if err == nil {
			err = fmt.Errorf("user %d is at the other end, and the plugin runs as %d", got, want)
		}
		g.tells.Do(func() {
			klog.Background().Error(err, "A connection to the address of a plugin is not of that plugin, and refused", "plugin", g.plugin)
		})
		_ = conn.Close()
	}
}

// wanted is as whom the plugin runs: as this process, unless it has a user of its own.
func (g guarded) wanted() uint64 {
	if g.user != nil {
		if uid, known := g.user(g.plugin); known {
			return uint64(uid)
		}
	}
	return uint64(os.Geteuid())
}

// errNobody says that a connection has no other end on this machine, or none any more.
var errNobody = errors.New("nobody is at the other end")

// peer is the user whose process is at the other end of a connection on this machine, by what the kernel says.
func peer(conn net.Conn) (uint64, error) {
	there, here, err := ends(conn)
	if err != nil {
		return 0, err
	}
	table, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("tell who is at the other end: %w", err)
	}
	four, err := table.NetTCP()
	if err != nil {
		return 0, fmt.Errorf("tell who is at the other end: %w", err)
	}
	six, err := table.NetTCP6()
	if err != nil {
		six = nil // there need not be any
	}
	for _, line := range append(four, six...) {
		if is(line.LocalAddr, line.LocalPort, there) && is(line.RemAddr, line.RemPort, here) {
			return line.UID, nil
		}
	}
	return 0, errNobody
}

func ends(conn net.Conn) (there, here netip.AddrPort, err error) {
	if there, err = netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil {
		return there, here, err
	}
	here, err = netip.ParseAddrPort(conn.LocalAddr().String())
	return there, here, err
}

func is(address net.IP, port uint64, want netip.AddrPort) bool {
	got, ok := netip.AddrFromSlice(address)
	return ok && got.Unmap() == want.Addr().Unmap() && port == uint64(want.Port())
}
