package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// orders are what the process is told that becomes a program.
type orders struct {
	Program string
	Args    []string
	Env     []string
	User    *User
	Limits  Limits
	Home    string
	// Parent is who has to live.
	Parent int
}

// The descriptors that the process is started with beside the usual three.
const (
	ordersFD  = 3
	troubleFD = 4
	codeNever = 125
)

// endangered is how much sooner the kernel takes memory from programs than from the server, from -1000 to 1000.
const endangered = 500

// Asked reports whether this process has been started to become another program. Whoever is asked calls Main, before anything else, and nothing after it.
func Asked() bool { return len(os.Args) > 0 && os.Args[0] == Name }

// Main becomes the program, and tells why if it cannot.
func Main() {
	// What is set below is of this thread alone, and stays with the process that it becomes.
	runtime.LockOSThread()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(troubleFD)
	// Whoever has started the server may have left it files that it knows nothing of. Kernels before 5.11 cannot do this.
	_ = unix.CloseRange(troubleFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	err := become(os.NewFile(ordersFD, "orders"))
	fmt.Fprint(os.NewFile(troubleFD, "trouble"), err)
	os.Exit(codeNever)
}

// become returns only if it fails.
func become(in io.Reader) error {
	var told orders
	// The orders come once there is a record of this process. If the server is killed before, there are none.
	if err := json.NewDecoder(in).Decode(&told); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	// It can be refused to make matters worse for oneself, and then things are as they were.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(endangered)), 0)
	unix.Umask(0o077)
	if err := leave(told.User); err != nil {
		return err
	}
	if err := os.Chdir(told.Home); err != nil {
		return err
	}
	// A change of user would take this back.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the server: %w", err)
	}
	if os.Getppid() != told.Parent {
		return errors.New("the server has gone")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renounce all that programs of other users could give: %w", err)
	}
	if err := bound(told.Limits, told.User != nil); err != nil {
		return err
	}
	err := syscall.Exec(told.Program, append([]string{told.Program}, told.Args...), told.Env)
	return fmt.Errorf("run %s: %w", told.Program, err)
}

// leave becomes a user for good.
func leave(to *User) error {
	if to == nil {
		return nil
	}
	id := int(to.ID)
	if err := errors.Join(syscall.Setgroups([]int{id}), syscall.Setgid(id), syscall.Setuid(id)); err != nil {
		return fmt.Errorf("become user %d: %w", id, err)
	}
	return nil
}

// bound has the kernel hold limits. That of processes counts all that the user has, so it makes sense for users alone that have nothing else.
func bound(limits Limits, ownUser bool) error {
	if !ownUser {
		limits.Processes = 0
	}
	for _, one := range []struct {
		resource int
		most     uint64
		always   bool
		name     string
	}{
		{syscall.RLIMIT_CORE, 0, true, "core dumps"},
		{syscall.RLIMIT_NOFILE, limits.Files, false, "files"},
		{unix.RLIMIT_NPROC, limits.Processes, false, "processes"},
		{syscall.RLIMIT_DATA, limits.Memory, false, "memory"}, // last: this program may have more already
	} {
		if one.most == 0 && !one.always {
			continue
		}
		if err := syscall.Setrlimit(one.resource, &syscall.Rlimit{Cur: one.most, Max: one.most}); err != nil {
			return fmt.Errorf("bound %s to %d: %w", one.name, one.most, err)
		}
	}
	return nil
}
