package kubelet

import (
	"bufio"
	"context"
	"io"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// attachTo attaches to one container.
type attachTo struct {
	server *Server
	target *container
}

// AttachContainer shows what the container prints from now on, and makes it print every line that it is given. It ends with the
// pod, with its input if it has one, or when the client has gone.
func (a attachTo) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize) error {
	lives, done := a.server.whilePodLives(ctx, a.target.pod)
	defer done()
	lives, cancel := context.WithCancel(lives)
	defer cancel()
	go drain(lives, resize)

	start := a.target.log.len()
	if in != nil {
		go func() {
			defer cancel()
			for lines := bufio.NewScanner(in); lines.Scan(); {
				a.target.log.append(time.Now(), lines.Text())
			}
		}()
	}
	if out == nil {
		<-lives.Done()
		return nil
	}
	newline := "\n"
	if tty {
		newline = "\r\n"
	}
	print := func(lines []logLine) error {
		for _, line := range lines {
			if _, err := io.WriteString(out, line.text+newline); err != nil {
				return err
			}
		}
		return nil
	}
	return a.target.log.follow(lives, start, print)
}

// drain takes terminal sizes that nobody looks at, so that their sender is not held up.
func drain(ctx context.Context, sizes <-chan remotecommand.TerminalSize) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-sizes:
			if !ok {
				return
			}
		}
	}
}
