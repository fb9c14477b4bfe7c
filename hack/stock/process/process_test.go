package process

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := map[string]struct {
		stat    string
		want    Usage
		wantErr string
	}{
		"times of the process and of its children add up": {
			stat: "42 (etcd) S 1 42 42 0 -1 4194560 5 0 0 0 150 50 20 30 20 0 9 0 100 1000000 25 18446744073709551615 1 1",
			want: Usage{CPU: 2500 * time.Millisecond, RSS: 25 * 4096},
		},
		"a program's name may look like fields": {
			stat: "42 (a) S 1 (b) S 1 42 42 0 -1 4194560 5 0 0 0 100 0 0 0 20 0 9 0 100 1000000 1 18446744073709551615 1 1",
			want: Usage{CPU: time.Second, RSS: 4096},
		},
		"a short line is refused": {
			stat:    "42 (etcd) S 1 42",
			wantErr: "only 5 fields",
		},
		"a line without a name is refused": {
			stat:    "42 etcd",
			wantErr: "no program name",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(tt.stat, 4096)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("parseStat() error = %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("parseStat() = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseMachineStat(t *testing.T) {
	got, err := parseMachineStat("cpu  100 20 30 9999 9999 1 2 47 50 60\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * time.Second; got != want {
		t.Errorf("parseMachineStat() = %s, want %s: times of idling and of guests do not count", got, want)
	}
}

func TestProcess(t *testing.T) {
	launcher := NewLauncher()
	defer launcher.Close()
	start := func(t *testing.T, script string) *Process {
		t.Helper()
		p, err := launcher.Run(exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("a process that ends says how", func(t *testing.T) {
		p := start(t, "exit 3")
		<-p.Exited()
		if got, want := p.Err().Error(), "exit status 3"; got != want {
			t.Errorf("Err() = %q, want %q", got, want)
		}
	})
	t.Run("killing reaches what the process started", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		cmd := exec.Command("sh", "-c", "sleep 1000 & echo started >&3; wait")
		cmd.ExtraFiles = []*os.File{write}
		p, err := launcher.Run(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		write.Close()
		line := make([]byte, len("started\n"))
		if _, err := io.ReadFull(read, line); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		// The pipe ends when the last process that holds it has ended.
		if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 {
			t.Errorf("read %q, %v after the kill, want the end of the pipe", rest, err)
		}
	})
	t.Run("a stopped process can be killed", func(t *testing.T) {
		p := start(t, "sleep 1000")
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that ignores the request to end is killed", func(t *testing.T) {
		p := start(t, "trap '' TERM; while :; do sleep 1; done")
		if err := p.Terminate(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if p.Err() == nil {
			t.Error("the process still runs")
		}
	})
	t.Run("closing the launcher ends what still runs", func(t *testing.T) {
		// Many, as now and then a launcher's goroutine begins on the main thread, which never ends.
		for range 50 {
			own := NewLauncher()
			p, err := own.Run(exec.Command("sleep", "1000"), filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			own.Close()
			<-p.Exited()
		}
	})
}
