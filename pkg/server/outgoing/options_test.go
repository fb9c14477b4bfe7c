package outgoing

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAdminSaysWhichNetworksMayBeCalled(t *testing.T) {
	for name, test := range map[string]struct {
		networks []string
		address  string
		want     bool
	}{
		"what is found by routing":       {address: "10.1.2.3", want: true},
		"not this machine":               {address: "127.0.0.1"},
		"not where clouds keep secrets":  {address: "169.254.169.254", networks: []string{"127.0.0.0/8"}},
		"this machine, if an admin says": {address: "127.0.0.1", networks: []string{"192.0.2.0/24", "127.0.0.0/8"}, want: true},
	} {
		o := Options{Networks: test.networks}
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := o.allow(net.ParseIP(test.address)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if err := (&Options{Networks: []string{"everywhere"}}).Validate(); err == nil {
		t.Error("what is no network is taken for one")
	}
}

func TestAnAdminSaysBelowWhichFoldersRepositoriesMayBeRead(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(real, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Files: []string{link}}
	if err := o.Validate(); err != nil || len(o.folders) != 1 || o.folders[0] != want {
		t.Errorf("folders %q and error %v, want %q", o.folders, err, want)
	}
	for _, name := range []string{file, filepath.Join(real, "gone")} {
		if err := (&Options{Files: []string{name}}).Validate(); err == nil || !strings.Contains(err.Error(), "--outbound-files") {
			t.Errorf("error %v for %s, want one that names the flag", err, name)
		}
	}
}
