package api

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// listeners returns the addresses that a process accepts TCP connections on, sorted. It knows them on Linux alone and skips the test
// elsewhere.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("who listens is only known on Linux")
	}
	sockets := socketsOf(t, pid)
	var out []string
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ..., see proc(5).
			const listening, state, local, inode = "0A", 3, 1, 9
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == listening && sockets[fields[inode]] {
				out = append(out, address(t, fields[local]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// socketsOf returns the inodes of the sockets that a process has open.
func socketsOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, file := range files {
		// A file may have been closed meanwhile.
		target, _ := os.Readlink(file)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out
}

// address reads an address as the kernel writes it: 32-bit words in the order of the machine, which is little-endian wherever this runs,
// then the port.
func address(t *testing.T, text string) string {
	t.Helper()
	ip, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(ip)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	parsed, _ := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(parsed.Unmap().String(), strconv.FormatUint(number, 10))
}
