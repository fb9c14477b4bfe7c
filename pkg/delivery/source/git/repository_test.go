package git

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

type repository struct{ *gittest.Repository }

func newTestRepository(t *testing.T) *repository {
	t.Helper()
	return &repository{gittest.New(t, "shop.git")}
}

func (r *repository) link(target, name string) {
	r.Helper()
	if err := os.Symlink(target, filepath.Join(r.Dir, name)); err != nil {
		r.Fatal(err)
	}
}

// hook runs a script when something is pushed.
func (r *repository) hook(name, script string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, ".git", "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		r.Fatal(err)
	}
}

// served is the repository behind git's own HTTP program.
type served struct{ *gittest.Server }

func (r *repository) serve() served {
	r.Helper()
	return served{r.ServeTLS()}
}

func (s served) request(ref Ref) Request {
	return Request{URL: s.CloneURL(), Ref: ref, Credentials: Credentials{CA: s.CA(), Username: s.Username, Password: s.Password}}
}

// everywhere allows the repositories that the tests make.
var everywhere = []string{"/"}

// anywhere allows loopback addresses, which the tests are at.
func anywhere(net.IP) bool { return true }

func newTestClient(t *testing.T, policy Policy, limits Limits) *Client {
	t.Helper()
	client, err := New(filepath.Join(t.TempDir(), "commits"), policy, limits)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
