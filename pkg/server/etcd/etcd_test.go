package etcd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketPathThatIsTooLongIsRefused(t *testing.T) {
	dir := "/" + strings.Repeat("d", maxSocketPath-len("/client.sock")-1)
	got, err := socketURL(dir, "client.sock")
	if err != nil || got.Path != dir+"/client.sock" || got.Scheme != "unix" {
		t.Errorf("URL %v, error %v for a path that just fits", got, err)
	}
	if _, err := socketURL(dir+"d", "client.sock"); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("error %v, want one that tells to choose a shorter --data-dir", err)
	}
}

func TestSocketOfAProcessThatWasKilledIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	if _, err := socketURL(dir, "s.sock"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the old socket is still there: %v", err)
	}
}
