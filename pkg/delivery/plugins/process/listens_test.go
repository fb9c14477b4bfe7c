//go:build linux

package process

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestAPortIsLookedForInTheKernelsTable(t *testing.T) {
	const line = "   0: 00000000:1B59 00000000:0000 0A 00000000:00000000 00:00000000 00000000 59001        0 12345 1 0000000000000000 100 0 0 10 0\n"
	for name, test := range map[string]struct {
		line    string
		port    int32
		listens bool
	}{
		"the port":                       {line, 7001, true},
		"another one":                    {line, 7002, false},
		"of IPv6":                        {strings.Replace(line, "00000000:1B59", "00000000000000000000000000000000:1B59", 1), 7001, true},
		"a connection that nobody takes": {strings.Replace(line, " 0A ", " 01 ", 1), 7001, false},
		"the heading":                    {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n", 7001, false},
		"nothing":                        {"", 7001, false},
		"no number of a port":            {strings.Replace(line, ":1B59", ":zzzz", 1), 7001, false},
		"no number of a user":            {strings.Replace(line, " 59001 ", " x ", 1), 7001, false},
	} {
		owner, listens := listenerIn(test.line, test.port)
		if listens != test.listens || listens && owner != 59001 {
			t.Errorf("%s: user %d listens %t, want %t", name, owner, listens, test.listens)
		}
	}
}

func TestWhatListensBelongsToTheUser(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	mine := uint32(os.Getuid())
	if err := ListensAs(port, &User{ID: mine}); err != nil {
		t.Error(err)
	}
	if err := ListensAs(port, nil); err != nil {
		t.Errorf("without users of their own: %v", err)
	}
	if err := ListensAs(port, &User{ID: mine + 1}); err == nil {
		t.Error("a program of somebody else passes for the plugin")
	}
}
