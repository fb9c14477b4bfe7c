//go:build linux

package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestMain is also the main of the programs that the tests run, and of the server that is killed.
func TestMain(m *testing.M) {
	if Asked() {
		Main()
	}
	if len(os.Args) > 2 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play is a program of the tests.
func play(part string, args []string) {
	switch part {
	case "tell": // what it has and may do
		var files, processes, memory syscall.Rlimit
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
		_ = syscall.Getrlimit(6, &processes)
		_ = syscall.Getrlimit(syscall.RLIMIT_DATA, &memory)
		status, _ := os.ReadFile("/proc/self/status")
		privileges := ""
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "NoNewPrivs:") {
				privileges = strings.TrimSpace(line)
			}
		}
		folder, _ := os.Getwd()
		_ = json.NewEncoder(os.Stdout).Encode(told{os.Getuid(), os.Getgid(), files.Max, processes.Max, memory.Max, privileges, folder, os.Environ(), descriptors(), args})
	case "exit":
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "wait":
		fmt.Println("waiting")
		select {}
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("waiting")
		select {}
	case "polite":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("waiting")
		<-asked
		fmt.Println("asked to end")
	case "fork": // children in a session and a group of their own, with and without its environment
		for _, env := range [][]string{nil, {}} {
			for _, attributes := range []*syscall.SysProcAttr{{}, {Setpgid: true}} {
				child := exec.Command(os.Args[0], "play", "deaf")
				child.Env, child.SysProcAttr = env, attributes
				_ = child.Start()
				fmt.Println("child", child.Process.Pid)
			}
		}
		child := exec.Command(os.Args[0], "play", "deaf")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = child.Start()
		fmt.Println("child", child.Process.Pid)
		fmt.Println("waiting")
		if len(args) > 0 {
			os.Exit(0)
		}
		select {}
	case "bomb": // forks as fast as it can, for ever
		fmt.Println("waiting")
		for {
			child := exec.Command(os.Args[0], "play", "bomb")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if child.Start() == nil {
				_ = child.Process.Release()
			}
		}
	case "eat":
		var kept [][]byte
		for range 1 << 20 {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			kept = append(kept, block)
		}
		fmt.Println(len(kept))
	case "server": // starts a program, and waits to be killed
		output, err := NewOutput(filepath.Join(args[0], "log"), clock.RealClock{})
		if err != nil {
			panic(err)
		}
		p, err := Start(Spec{Name: "a", Program: os.Args[0], Args: append([]string{"play"}, args[1:]...), Home: filepath.Join(args[0], "home"), Output: output, Record: filepath.Join(args[0], "run", "a.json")})
		if err != nil {
			panic(err)
		}
		for !slices.Contains(output.Last(), "waiting") {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(p.PID())
		for _, line := range output.Last() {
			if pid, is := strings.CutPrefix(line, "child "); is {
				fmt.Println(pid)
			}
		}
		fmt.Println("started")
		select {}
	}
}

type told struct {
	UID, GID                 int
	Files, Processes, Memory uint64
	Privileges, Folder       string
	Env, Descriptors, Args   []string
}

// descriptors are the files that this process has open beside the first three and those of the runtime.
func descriptors() (out []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		number, _ := strconv.Atoi(entry.Name())
		to, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if number > 2 && err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			out = append(out, to)
		}
	}
	return out
}

func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// spec is one that runs a part of play.
func spec(t *testing.T, args ...string) Spec {
	t.Helper()
	dir := t.TempDir()
	output, err := NewOutput(filepath.Join(dir, "logs", "a.log"), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close() })
	return Spec{Name: "a", Program: self(t), Args: append([]string{"play"}, args...), Home: filepath.Join(dir, "home"), Output: output, Record: filepath.Join(dir, "run", "a.json")}
}

func run(t *testing.T, of Spec) *Process {
	t.Helper()
	p, err := Start(of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	return p
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never was so that %s", what)
		case <-tick.C:
		}
	}
}

func awaitLine(t *testing.T, of Spec, line string) {
	t.Helper()
	eventually(t, "it says "+line, func() bool { return slices.Contains(of.Output.Last(), line) })
}

func ends(t *testing.T, p *Process) string {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not end")
	}
	return p.Exit().Said
}

// lives reports whether a process runs.
func lives(pid int) bool {
	of, err := look(pid)
	return err == nil && !of.dead
}

func TestAProgramHasNothingOfTheServer(t *testing.T) {
	t.Setenv("SERVERS_SECRET", "s3cret-word")
	of := spec(t, "tell", "a b", "")
	of.Limits = Limits{Memory: 512 << 20, Files: 99}
	p := run(t, of)
	if said := ends(t, p); said != "exited with code 0" {
		t.Errorf("it %s: %v", said, of.Output.Last())
	}
	var got told
	if err := json.Unmarshal([]byte(of.Output.Last()[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Files != 99 || got.Memory != 512<<20 || got.Privileges != "NoNewPrivs:\t1" || got.Folder != of.Home || !slices.Equal(got.Args, []string{"a b", ""}) {
		t.Errorf("the program has %+v", got)
	}
	if len(got.Descriptors) > 0 {
		t.Errorf("the program has files of the server: %v", got.Descriptors)
	}
	names := []string{}
	for _, entry := range got.Env {
		name, value, _ := strings.Cut(entry, "=")
		names = append(names, name)
		if name == "HOME" && value != of.Home {
			t.Errorf("its home is %s", value)
		}
	}
	if want := []string{"GOMEMLIMIT", "HOME", "LANG", markVariable, "PATH", "TMPDIR"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("its environment has %v, want %v", names, want)
	}
	if _, err := os.Stat(of.Record); !os.IsNotExist(err) {
		t.Errorf("there still is a record of it: %v", err)
	}
}

// ownUsers returns users for the programs of a test, which root alone can give, and a program that all may run.
func ownUsers(t *testing.T) (users *Users, dir, program string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give programs a user of their own")
	}
	dir, err := os.MkdirTemp("", "plugins-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "program")
	content, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	homes := filepath.Join(dir, "homes")
	if err := os.Mkdir(homes, 0o711); err != nil {
		t.Fatal(err)
	}
	return &Users{First: 58000, Last: 58001, Homes: homes}, dir, program
}

func TestAProgramRunsAsAUserOfItsOwn(t *testing.T) {
	users, dir, program := ownUsers(t)
	user, err := users.Of("a")
	if err != nil {
		t.Fatal(err)
	}
	of := spec(t, "tell")
	of.Program, of.Home, of.User, of.Limits.Processes = program, filepath.Join(dir, "homes", "a"), user, 77
	if said := ends(t, run(t, of)); said != "exited with code 0" {
		t.Fatalf("it %s: %v", said, of.Output.Last())
	}
	var got told
	if err := json.Unmarshal([]byte(of.Output.Last()[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.UID != 58000 || got.GID != 58000 || got.Processes != 77 {
		t.Errorf("it runs as %d:%d with %d processes, want 58000:58000 with 77", got.UID, got.GID, got.Processes)
	}
	info, err := os.Stat(of.Home)
	if err != nil {
		t.Fatal(err)
	}
	if owner, _ := ownerOf(info); owner != 58000 || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder belongs to %d and has mode %v", owner, info.Mode())
	}
}

func TestUsersAreOfOneProgramEach(t *testing.T) {
	users, dir, _ := ownUsers(t)
	id := func(name string) uint32 {
		t.Helper()
		user, err := users.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		return user.ID
	}
	if a, b, again := id("a"), id("b"), id("a"); a != 58000 || b != 58001 || again != a {
		t.Errorf("users are %d, %d and %d, want 58000, 58001 and 58000", a, b, again)
	}
	if _, err := users.Of("c"); err == nil || !strings.Contains(err.Error(), "--plugins-uid-range") {
		t.Errorf("error %v, want one that names the flag", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "homes", "a")); err != nil {
		t.Fatal(err)
	}
	if c := id("c"); c != 58000 {
		t.Errorf("the user of a program that is gone is not given to the next: %d", c)
	}
}

func TestHowAProgramEnds(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		stop  time.Duration
		kills bool
		want  string
		says  string
	}{
		"by itself":                         {args: []string{"exit", "0"}, want: "exited with code 0"},
		"by itself with an error":           {args: []string{"exit", "7"}, want: "exited with code 7"},
		"asked":                             {args: []string{"polite"}, kills: true, stop: time.Minute, want: "exited with code 0", says: "asked to end"},
		"asked, though it does not say how": {args: []string{"wait"}, kills: true, stop: time.Minute, want: "exited with code 2"},
		"killed, as it does not listen":     {args: []string{"deaf"}, kills: true, stop: 50 * time.Millisecond, want: "was ended by signal SIGKILL"},
		"killed at once":                    {args: []string{"polite"}, kills: true, want: "was ended by signal SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			of := spec(t, test.args...)
			p := run(t, of)
			if test.kills {
				awaitLine(t, of, "waiting")
				p.Stop(test.stop)
			}
			if got := ends(t, p); got != test.want && !(name == "asked, though it does not say how" && got == "was ended by signal SIGTERM") {
				t.Errorf("it %s, want %s", got, test.want)
			}
			if test.says != "" && !slices.Contains(of.Output.Last(), test.says) {
				t.Errorf("it says %v, want %q", of.Output.Last(), test.says)
			}
		})
	}
}

func TestWhatAProgramHasStartedEndsWithIt(t *testing.T) {
	for name, args := range map[string][]string{"that is stopped": nil, "that ends by itself": {"and end"}} {
		t.Run(name, func(t *testing.T) {
			of := spec(t, append([]string{"fork"}, args...)...)
			p := run(t, of)
			awaitLine(t, of, "waiting")
			children := childrenIn(of.Output.Last())
			if args == nil {
				p.Stop(50 * time.Millisecond)
			}
			ends(t, p)
			for _, child := range children {
				if lives(child) {
					t.Errorf("child %d lives on", child)
				}
			}
			if len(children) != 5 {
				t.Errorf("%d children have been started, want 5", len(children))
			}
		})
	}
}

func childrenIn(lines []string) (out []int) {
	for _, line := range lines {
		if text, is := strings.CutPrefix(line, "child "); is {
			pid, _ := strconv.Atoi(text)
			out = append(out, pid)
		}
	}
	return out
}

func TestAProgramThatForksForEverIsBoundedAndEnds(t *testing.T) {
	users, dir, program := ownUsers(t)
	user, err := users.Of("a")
	if err != nil {
		t.Fatal(err)
	}
	of := spec(t, "bomb")
	of.Program, of.Home, of.User, of.Limits.Processes = program, filepath.Join(dir, "homes", "a"), user, 80
	p := run(t, of)
	awaitLine(t, of, "waiting")
	eventually(t, "there are several of it", func() bool { return len(ownedBy(t, user.ID)) > 2 })
	p.Stop(0)
	if said := p.Exit().Said; said != "was ended by signal SIGKILL" {
		t.Errorf("it %s", said)
	}
	if left := ownedBy(t, user.ID); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// ownedBy are the processes of a user that have not ended.
func ownedBy(t *testing.T, user uint32) (out []int) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		if of, err := look(pid); err == nil && !of.dead && of.user == user {
			out = append(out, pid)
		}
	}
	return out
}

func TestAProgramThatTakesTooMuchMemoryEndsAlone(t *testing.T) {
	of := spec(t, "eat")
	of.Limits.Memory = 256 << 20
	if said := ends(t, run(t, of)); said == "exited with code 0" {
		t.Errorf("it %s", said)
	}
}

func TestWhyAProgramCannotBeRunIsTold(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.WriteFile(closed, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"it is not there":           {func(s *Spec) { s.Program = filepath.Join(dir, "none") }, "no such file or directory"},
		"it is no program":          {func(s *Spec) { s.Program = text }, "exec format error"},
		"it may not be run":         {func(s *Spec) { s.Program = closed }, "permission denied"},
		"an argument is too long":   {func(s *Spec) { s.Args = []string{strings.Repeat("x", mostArgument)} }, "131072 bytes"},
		"its folder cannot be made": {func(s *Spec) { s.Home = filepath.Join(text, "home") }, "not a directory"},
		"nor its record":            {func(s *Spec) { s.Record = filepath.Join(text, "a.json") }, "write down which process it is"},
	} {
		t.Run(name, func(t *testing.T) {
			of := spec(t, "wait")
			test.change(&of)
			p, err := Start(of)
			if err == nil {
				p.Stop(0)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `start plugin "a"`) {
				t.Errorf("error %v, want %q of the plugin", err, test.want)
			}
			if _, err := os.Stat(of.Record); err == nil {
				t.Error("there is a record of it")
			}
		})
	}
}

// server starts a server that starts a program, and returns it with the processes of that.
func server(t *testing.T, dir string, args ...string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(self(t), append([]string{"play", "server", dir}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var pids []int
	for {
		var word string
		if _, err := fmt.Fscanln(out, &word); err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(word)
		if err != nil {
			return cmd, pids
		}
		pids = append(pids, pid)
	}
}

func TestAProgramEndsWithAServerThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	killed, pids := server(t, dir, "deaf")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	eventually(t, "the program has gone", func() bool { return !lives(pids[0]) })
}

func TestTheNextServerEndsWhatAKilledOneHasLeft(t *testing.T) {
	dir := t.TempDir()
	killed, pids := server(t, dir, "fork")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if err := EndOrphan(filepath.Join(dir, "run", "a.json"), nil); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if lives(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
	if len(pids) != 6 {
		t.Errorf("%d processes were started, want 6", len(pids))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "run", "*")); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
}

// Numbers of processes are given again, and after a restart of the machine all of them are.
func TestAStrangersProcessIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*record){
		"that has the number now":                    func(r *record) { r.Started-- },
		"that has it since the machine was started":  func(r *record) { r.Boot = "another" },
		"whose session has the number":               func(r *record) { r.Started = 1 },
		"that has the number, and started at a time": func(r *record) { r.Started++ },
	} {
		t.Run(name, func(t *testing.T) {
			stranger := exec.Command(self(t), "play", "deaf")
			stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
			of, err := look(stranger.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			now, err := boot()
			if err != nil {
				t.Fatal(err)
			}
			left := record{PID: of.pid, Started: of.started, Boot: now, Mark: "m"}
			change(&left)
			dir := t.TempDir()
			if err := left.write(filepath.Join(dir, "a.json")); err != nil {
				t.Fatal(err)
			}
			if err := EndOrphan(filepath.Join(dir, "a.json"), nil); err != nil {
				t.Fatal(err)
			}
			if !lives(of.pid) {
				t.Error("a stranger's process was ended")
			}
			if _, err := os.Stat(filepath.Join(dir, "a.json")); !os.IsNotExist(err) {
				t.Errorf("the record is still there: %v", err)
			}
		})
	}
}

// A machine that is switched off may leave half of one.
func TestARecordThatIsNotWholeIsRemoved(t *testing.T) {
	for _, content := range []string{"", "{", "[]", strings.Repeat("x", mostRecord+1)} {
		file := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := EndOrphan(file, nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
	}
}

// A user of its own tells what is a program's, also without a record.
func TestWhatAUserOfItsOwnHasIsEnded(t *testing.T) {
	users, dir, program := ownUsers(t)
	user, err := users.Of("a")
	if err != nil {
		t.Fatal(err)
	}
	of := spec(t, "deaf")
	of.Program, of.Home, of.User = program, filepath.Join(dir, "homes", "a"), user
	p := run(t, of)
	awaitLine(t, of, "waiting")
	if owner := users.Owner("a"); owner == nil || *owner != *user || users.Owner("b") != nil {
		t.Errorf("owners are %v and %v", owner, users.Owner("b"))
	}
	if err := EndOrphan(filepath.Join(t.TempDir(), "none.json"), user); err != nil {
		t.Fatal(err)
	}
	if said := ends(t, p); said != "was ended by signal SIGKILL" {
		t.Errorf("it %s", said)
	}
}

func TestWhatTheKernelTellsIsRead(t *testing.T) {
	got, err := parseStat(7, []byte("7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1 2 3\n"))
	if err != nil || got.session != 7 || got.started != 123456 || got.dead {
		t.Errorf("read %+v, %v", got, err)
	}
	if got, err := parseStat(7, []byte("7 (a) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1\n")); err != nil || !got.dead {
		t.Errorf("read %+v, %v, want one that has ended", got, err)
	}
	for _, bad := range []string{"", "7", "7 (a", "7 (a) S 1 7 y 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 -1 1"} {
		if _, err := parseStat(7, []byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
