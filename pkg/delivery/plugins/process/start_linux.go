package process

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// outputWait is how long what a program has written is still read after it has ended.
	outputWait = time.Second
	// becomeWithin is how long a process has to become the program.
	becomeWithin = 30 * time.Second
	// mostTrouble bounds what is read of why a program could not be run.
	mostTrouble = 4 << 10
	// mostArgument is how long Linux lets an argument be, with the byte that ends it.
	mostArgument = 128 << 10
)

// Process is a program that has been started.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
	exit Exit
	kill sync.Once

	mu     sync.Mutex
	record record
}

// Start runs a program. When it returns one, the program has its bounds and is running; it goes on until it ends by itself, or Stop ends it.
func Start(spec Spec) (*Process, error) {
	p, err := start(spec)
	if err != nil {
		return nil, fmt.Errorf("start plugin %q: %w", spec.Name, err)
	}
	return p, nil
}

func start(spec Spec) (*Process, error) {
	for _, arg := range spec.Args {
		if len(arg) >= mostArgument {
			return nil, fmt.Errorf("its configuration and deploy targets have %d bytes as JSON: an argument of a process may have %d at most", len(arg), mostArgument-1)
		}
	}
	env, err := spec.prepare()
	if err != nil {
		return nil, err
	}
	mark := rand.Text()
	p := &Process{spec: spec, done: make(chan struct{}), record: record{Mark: mark, User: spec.User, Checksum: spec.Checksum}}
	if spec.Beside {
		p.record.User = nil
	}
	told := orders{
		Program: spec.Program, Args: spec.Args, Env: append(env, markVariable+"="+mark), User: spec.User, Limits: spec.Limits, Home: spec.Home, Parent: os.Getpid(),
	}
	ordersOut, ordersIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	troubleOut, troubleIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ordersOut.Close(), ordersIn.Close())
	}
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Args = []string{Name}
	p.cmd.Env = []string{}
	p.cmd.Dir = "/"
	p.cmd.ExtraFiles = []*os.File{ordersOut, troubleIn}
	p.cmd.Stdout, p.cmd.Stderr = spec.Output, spec.Output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.WaitDelay = outputWait

	started := make(chan error)
	go p.live(started)
	err = <-started
	_, _ = ordersOut.Close(), troubleIn.Close()
	defer troubleOut.Close()
	if err != nil {
		_ = ordersIn.Close()
		return nil, err
	}
	err = errors.Join(p.order(ordersIn, told), troubleOut.SetReadDeadline(time.Now().Add(becomeWithin)))
	if err == nil {
		err = trouble(troubleOut)
	}
	if err != nil {
		p.Stop(0)
		_ = os.Remove(spec.Record)
		return nil, err
	}
	return p, nil
}

// trouble waits until the program runs, or will never, and returns why.
func trouble(from io.Reader) error {
	said, err := io.ReadAll(io.LimitReader(from, mostTrouble))
	if err != nil {
		return fmt.Errorf("wait until it runs: %w", err)
	}
	if len(said) > 0 {
		return errors.New(text.Line(string(said), mostTrouble))
	}
	return nil
}

// prepare makes the folders of the program and returns its environment, which has nothing of ours.
func (s Spec) prepare() ([]string, error) {
	temporary := filepath.Join(s.Home, "tmp")
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return nil, err
	}
	if s.User != nil {
		if err := os.Lchown(s.Home, int(s.User.ID), int(s.User.ID)); err != nil {
			return nil, err
		}
	}
	// The folder is the program's own, so what lies there may be anything, links to elsewhere among it.
	if err := os.Mkdir(temporary, 0o700); err == nil && s.User != nil {
		if err := os.Lchown(temporary, int(s.User.ID), int(s.User.ID)); err != nil {
			return nil, err
		}
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.Home, "TMPDIR=" + temporary, "LANG=C.UTF-8"}
	if s.Limits.Memory > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatUint(s.Limits.Memory/4*3, 10)) // which programs in Go collect before
	}
	return env, nil
}

// order writes down which process it is before that is told what to do.
func (p *Process) order(in *os.File, told orders) error {
	defer in.Close()
	of, err := look(p.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("find the process: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record.PID, p.record.Started = of.pid, of.started
	if p.record.Boot, err = boot(); err != nil {
		return err
	}
	if err := p.record.write(p.spec.Record); err != nil {
		return fmt.Errorf("write down which process it is: %w", err)
	}
	return json.NewEncoder(in).Encode(told)
}

// live starts the process and waits for its end. The kernel ends the process with the thread that has started it, so this one does nothing else.
func (p *Process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	// As long as nobody has asked how it ended, its number and that of its group are given to nobody else.
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	err := p.cmd.Wait()
	p.exit = Exit{Said: ended(p.cmd.ProcessState, err), Success: p.cmd.ProcessState != nil && p.cmd.ProcessState.Success(), At: time.Now()}
	if err := p.endAll(); err != nil {
		p.exit.Said += "; " + err.Error()
	}
	close(p.done)
}

// endAll ends what the program has left behind, and forgets it.
func (p *Process) endAll() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.record.PID == 0 {
		return nil // it was never told what to do
	}
	if err := p.record.endAll(); err != nil {
		return err
	}
	if err := os.Remove(p.spec.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ended says how a process has ended.
func ended(state *os.ProcessState, err error) string {
	if state == nil {
		return "cannot be waited for: " + err.Error()
	}
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return "was ended by signal " + unix.SignalName(status.Signal())
	}
	return "exited with code " + strconv.Itoa(state.ExitCode())
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program and all that it has started are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how it ended. It is for after Done.
func (p *Process) Exit() Exit { return p.exit }

// Stop asks the program to end, kills it after a grace period, and returns when it is gone with all that it has started.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 {
		_ = p.cmd.Process.Signal(unix.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
	}
	p.kill.Do(func() { _ = p.cmd.Process.Kill() })
	<-p.done
}
