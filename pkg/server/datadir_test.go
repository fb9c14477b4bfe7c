package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestDataDirectoryServesOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(path); err == nil || !strings.Contains(err.Error(), "another manifold") {
		t.Errorf("error %v of a second opener, want it to tell of the first", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDataDir(path)
	if err != nil {
		t.Fatalf("it cannot be opened again: %v", err)
	}
	defer again.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode %o, want 700", got)
	}
	if got, want := again.join("pki", "ca.crt"), filepath.Join(path, "pki", "ca.crt"); got != want {
		t.Errorf("joined %s, want %s", got, want)
	}
}

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

func TestAdminKubeconfig(t *testing.T) {
	dir := t.TempDir()
	p := pki{dir: filepath.Join(dir, "pki")}
	ensured(t, p, today, served)
	path := filepath.Join(dir, "admin.kubeconfig")
	for _, step := range []struct {
		host net.IP
		port int
		want string
	}{
		{net.IPv4(127, 0, 0, 1), 6443, "https://127.0.0.1:6443"},
		{net.IPv4zero, 6443, "https://127.0.0.1:6443"},
		{nil, 7443, "https://127.0.0.1:7443"},
		{net.IPv6loopback, 7443, "https://[::1]:7443"},
	} {
		if err := writeAdminKubeconfig(path, p, step.host, step.port); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != step.want {
			t.Errorf("%s port %d: server %s, want %s", step.host, step.port, config.Host, step.want)
		}
		if len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 || config.Insecure {
			t.Errorf("the kubeconfig is not self-contained")
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
}

func TestRestartKeepsWhatSomebodyAddedToTheAdminKubeconfig(t *testing.T) {
	dir := t.TempDir()
	p := pki{dir: filepath.Join(dir, "pki")}
	ensured(t, p, today, served)
	path := filepath.Join(dir, "admin.kubeconfig")
	if err := writeAdminKubeconfig(path, p, nil, 6443); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["manifold"].Namespace = "shop"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if err := writeAdminKubeconfig(path, p, nil, 7443); err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Contexts["manifold"].Namespace; got != "shop" {
		t.Errorf("namespace %q, want shop", got)
	}
	if got := after.Clusters["manifold"].Server; got != "https://127.0.0.1:7443" {
		t.Errorf("server %s, want that of the restart", got)
	}
}
