package keys

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestAdminKubeconfig(t *testing.T) {
	dir := t.TempDir()
	p := Store{Dir: filepath.Join(dir, "pki")}
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
		if err := p.WriteAdminKubeconfig(path, step.host, step.port); err != nil {
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
	p := Store{Dir: filepath.Join(dir, "pki")}
	ensured(t, p, today, served)
	path := filepath.Join(dir, "admin.kubeconfig")
	if err := p.WriteAdminKubeconfig(path, nil, 6443); err != nil {
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
	if err := p.WriteAdminKubeconfig(path, nil, 7443); err != nil {
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
