package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// execIn runs commands in one container.
type execIn struct {
	server *Server
	target *container
}

// outputGrace is how long output may still come from what a command left behind when it ended.
const outputGrace = time.Second

// ExecInContainer runs a program of this machine in the container's folder, with the container's environment. A program that ends
// with another status than 0 makes an error that carries it.
func (e execIn) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := e.command(ctx, command)
	if err != nil {
		return err
	}
	if tty {
		err = e.runOnTerminal(ctx, cmd, in, out, resize)
	} else {
		err = e.run(cmd, in, out, errOut)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: exit, Code: exitCode(exit)}
	}
	return err
}

func (e execIn) command(ctx context.Context, command []string) (*exec.Cmd, error) {
	if len(command) == 0 {
		return nil, errors.New("no command given")
	}
	if err := os.MkdirAll(e.target.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the container: %w", err)
	}
	env, err := e.server.environment(ctx, e.target)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = e.target.dir, env, outputGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, nil
}

func (e execIn) run(cmd *exec.Cmd, in io.Reader, out, errOut io.WriteCloser) error {
	// Streams that were not asked for are nil pointers in no interface, so plain assignments keep them nil.
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	if in != nil {
		// Not cmd.Stdin: Wait would then wait for the client to close its end, also once the command has ended.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer stdin.Close()
			_, _ = io.Copy(stdin, in)
		}()
	}
	if err := e.server.config.Launcher.Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// runOnTerminal runs the command as the leader of a session with a terminal of its own.
func (e execIn) runOnTerminal(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer,
	resize <-chan remotecommand.TerminalSize) error {
	terminal, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	defer terminal.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = e.server.config.Launcher.Start(cmd)
	tty.Close()
	if err != nil {
		return err
	}
	go applySizes(ctx, terminal, resize)
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if out != nil {
			_, _ = io.Copy(out, terminal) // ends with an error once nobody has the other end open
		}
	}()
	err = cmd.Wait()
	select {
	case <-shown:
	case <-time.After(outputGrace):
	}
	return err
}

func applySizes(ctx context.Context, terminal *os.File, sizes <-chan remotecommand.TerminalSize) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}
}

// exitCode is the status as a shell would report it: 128 and the signal for what a signal ended.
func exitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
