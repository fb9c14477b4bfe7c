//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
)

// TestMain is also the main of the plugins that the tests start.
func TestMain(m *testing.M) {
	if process.Asked() {
		process.Main()
	}
	if at := slices.Index(os.Args, "--config"); len(os.Args) > 1 && os.Args[1] == "start" && at > 0 {
		serve(os.Args[at+1])
	}
	os.Exit(m.Run())
}

// child is a plugin in a process of its own.
type child struct {
	deployment.UnimplementedDeploymentServiceServer
}

func (child) FetchDefinedStages(context.Context, *deployment.FetchDefinedStagesRequest) (*deployment.FetchDefinedStagesResponse, error) {
	return &deployment.FetchDefinedStagesResponse{Stages: []string{"CHILD_SYNC"}}, nil
}

func serve(config string) {
	var told struct{ Port int }
	if err := json.Unmarshal([]byte(config), &told); err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(told.Port))
	if err != nil {
		panic(err)
	}
	fmt.Println("serving")
	server := grpc.NewServer()
	deployment.RegisterDeploymentServiceServer(server, child{})
	panic(server.Serve(listener))
}

// cached are programs that lie where a test has put them.
type cached string

func (c cached) Get(context.Context, fetch.Source) (string, error) { return string(c), nil }

func (cached) Prune([]string) error { return nil }

// nowhere is for plugins that call nobody.
type nowhere struct{}

func (nowhere) Address(string) (string, error) { return "127.0.0.1:1", nil }
func (nowhere) Close(string)                   {}

// realHost runs programs as processes, with users of their own where the tests may.
func realHost(t *testing.T, dir string) (*Host, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "program")
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(dir, "plugins"), Programs: cached(file), Services: nowhere{}}
	if os.Geteuid() == 0 {
		o.Users = &process.Users{First: 58100, Last: 58110, Homes: filepath.Join(o.Dir, "homes")}
	}
	h := New(o)
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	sum := sha256.Sum256(content)
	return h, hex.EncodeToString(sum[:])
}

func awaitStatus(t *testing.T, h *Host, name, what string, holds func(Status) bool) Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got, _ := h.Status(name)
		if holds(got) {
			return got
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it never was so that %s: %+v", name, what, got)
		case <-tick.C:
		}
	}
}

// open makes a folder that users of plugins may pass through.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "host-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestARealProcessIsStartedAgainWhenItIsKilledOrStopped(t *testing.T) {
	dir := open(t)
	h, sum := realHost(t, dir)
	h.Set("a", Spec{URL: "file:///program", Sha256: sum, Grace: time.Second, Limits: process.Limits{Memory: 1 << 30, Files: 256, Processes: 256}}, Seen{})
	first := awaitStatus(t, h, "a", "it is ready", func(s Status) bool { return s.Ready })
	if !slices.Equal(first.Stages, []string{"CHILD_SYNC"}) || (first.User != 0) != (os.Geteuid() == 0) {
		t.Errorf("status %+v", first)
	}
	if user, known := h.User("a"); known != (os.Geteuid() == 0) || user != first.User {
		t.Errorf("it runs as user %d, %t; the status says %d", user, known, first.User)
	}
	signal := func(number syscall.Signal) {
		t.Helper()
		var pid int
		if _, err := fmt.Sscanf(awaitStatus(t, h, "a", "it is ready", func(s Status) bool { return s.Ready }).Message, "process %d", &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, number); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGKILL)
	back := awaitStatus(t, h, "a", "it is back", func(s Status) bool { return s.Ready && s.Incarnation == 2 })
	if back.Restarts != 1 || !strings.Contains(back.LastError, "SIGKILL") || !strings.Contains(back.LastError, "it last wrote: serving") {
		t.Errorf("status %+v", back)
	}
	signal(syscall.SIGSTOP) // it hangs
	begun := time.Now()
	awaitStatus(t, h, "a", "that is noticed", func(s Status) bool { return !s.Ready })
	noticed := time.Since(begun)
	awaitStatus(t, h, "a", "it is back", func(s Status) bool { return s.Ready && s.Incarnation == 3 })
	if back := time.Since(begun); noticed > 5*time.Second || back > 15*time.Second {
		t.Errorf("it was noticed after %s, and back after %s", noticed, back)
	}
	h.Remove("a")
	awaitStatus(t, h, "a", "it has gone", func(s Status) bool { return s.Reason == "" })
	if left, _ := filepath.Glob(filepath.Join(dir, "plugins", "run", "*")); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
}
