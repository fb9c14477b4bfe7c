// Package process starts programs that must not outlive the one that started them.
//
// Each gets a process group of its own, so that a signal reaches what it started in turn, and so that Ctrl-C in a terminal reaches
// the parent alone, which then decides the order. On Linux the kernel kills it when the parent dies, however the parent dies.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Launcher starts processes. The kernel takes the thread that started a process for its parent, so a Launcher keeps a thread of its
// own for as long as its processes may live.
type Launcher struct {
	starts    chan func()
	closeOnce sync.Once
}

// NewLauncher returns a Launcher. Close ends it.
func NewLauncher() *Launcher {
	l := &Launcher{starts: make(chan func())}
	go l.run()
	return l
}

// run starts what it is told to from one thread, which ends with it.
func (l *Launcher) run() {
	// Unlocked only where another thread takes over: a locked thread ends with its goroutine.
	runtime.LockOSThread()
	if onMainThread() {
		// The runtime never ends the main thread, so processes of it would outlive Close. While this goroutine holds the main thread,
		// the next one runs on another.
		defer runtime.UnlockOSThread()
		other := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(other)
			l.serve()
		}()
		<-other
		return
	}
	l.serve()
}

// serve carries out starts until Close.
func (l *Launcher) serve() {
	for start := range l.starts {
		start()
	}
}

// Close ends the Launcher's thread, and with it, on Linux, every process that it started and that still runs.
func (l *Launcher) Close() {
	l.closeOnce.Do(func() { close(l.starts) })
}

// Start starts the command in a process group of its own; with cmd.SysProcAttr.Setsid, in a session of its own. The caller waits for
// the command as usual.
func (l *Launcher) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	l.starts <- func() { started <- cmd.Start() }
	return <-started
}

// Process is a running program.
type Process struct {
	pid    int
	exited chan struct{}
	// err says how it ended; to be read once exited is closed.
	err error
}

// Run starts the program with its output appended to the log file, and waits for its end in the background.
func (l *Launcher) Run(cmd *exec.Cmd, logFile string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", cmd.Path, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := l.Start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &Process{pid: cmd.Process.Pid, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		if p.err = cmd.Wait(); p.err == nil {
			p.err = errors.New("exit status 0")
		}
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int {
	return p.pid
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} {
	return p.exited
}

// Err says how the process ended, or nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return p.err
	default:
		return nil
	}
}

// Signal sends the signal to the whole process group. A process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.Err() != nil {
		return nil
	}
	if err := syscall.Kill(-p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process group %d: %w", sig, p.pid, err)
	}
	return nil
}

// Kill ends the whole process group at once and waits until the process is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Terminate asks the process group to end, and kills it when it has not after the grace period.
func (p *Process) Terminate(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
		return p.Kill()
	}
}
