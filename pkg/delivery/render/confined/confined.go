package confined

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// Bounds are those of one rendering. Zero stands for the default.
type Bounds struct {
	// Time is how long it may take, also that of the processor; 30 seconds.
	Time time.Duration
	// Memory is what it may use, in bytes; 512 MiB.
	Memory int64
}

// Renderer renders in processes of their own.
type Renderer struct {
	bounds  Bounds
	running *semaphore.Weighted
}

// New returns a renderer with at most concurrent processes at a time.
func New(bounds Bounds, concurrent int) *Renderer {
	if bounds.Time <= 0 {
		bounds.Time = 30 * time.Second
	}
	if bounds.Memory <= 0 {
		bounds.Memory = 512 << 20
	}
	return &Renderer{bounds: bounds, running: semaphore.NewWeighted(int64(max(concurrent, 1)))}
}

// Render makes objects of the application in a folder of a tree. Of the tree, this process reads only what the rendering needs.
func (r *Renderer) Render(ctx context.Context, tree fs.FS, folder string, options render.Options) (*render.Result, error) {
	bundle, err := render.Gather(tree, folder, options)
	if err != nil {
		return nil, err
	}
	return r.Bundle(ctx, bundle, options)
}

// Bundle makes objects of what has been gathered with the same options.
func (r *Renderer) Bundle(ctx context.Context, bundle *render.Bundle, options render.Options) (*render.Result, error) {
	if err := r.running.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("render %q: wait for others: %w", bundle.Path, err)
	}
	defer r.running.Release(1)
	result, err := r.run(ctx, request{Bundle: bundle, Options: options, Bounds: r.bounds})
	if err != nil {
		return nil, fmt.Errorf("render %q: %w", bundle.Path, err)
	}
	return result, nil
}

const (
	// mostAnswer bounds what the process may answer, in bytes. Its own bound on objects comes first.
	mostAnswer = 256 << 20
	// mostLastWords bounds what is kept of what it says when it fails.
	mostLastWords = 4 << 10
	// mostSaid bounds what is shown of that, and of its errors: templates put into them what they like.
	mostSaid = 2000
)

func (r *Renderer) run(ctx context.Context, asked request) (*render.Result, error) {
	in, err := written(asked)
	if err != nil {
		return nil, err
	}
	program, err := self()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.bounds.Time)
	defer cancel()
	out, words := &capped{most: mostAnswer}, &capped{most: mostLastWords}
	command := exec.CommandContext(limited, program)
	command.Args = []string{name}
	command.Env = []string{} // not even the environment of this process
	command.Dir = "/"
	command.Stdin, command.Stdout, command.Stderr = in, out, words
	command.WaitDelay = time.Second
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("%w: it takes longer than %s", render.ErrTooLarge, r.bounds.Time)
	case err != nil && exhausted(err, words.String()):
		return nil, fmt.Errorf("%w: it needs more than %d MiB of memory", render.ErrTooLarge, r.bounds.Memory>>20)
	case err != nil:
		return nil, fmt.Errorf("%w: the process that renders has ended: %w: %s", render.ErrInvalid, err, text.Line(words.String(), mostSaid))
	}
	return read(out.Bytes())
}

// written is a request as the process reads it: the bounds go first, so that they hold for the reading of the rest.
func written(asked request) (io.Reader, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if err := errors.Join(encoder.Encode(asked.Bounds), encoder.Encode(asked)); err != nil {
		return nil, fmt.Errorf("write what to render: %w", err)
	}
	return &out, nil
}

// self is this program, also if another one lies in its place by now.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// exhausted reports whether a process has ended because it may have no more. It does so in many ways: the runtime finds no memory for the heap, a stack or
// a thread, a library gets none, or the kernel ends it. What is left are the errors that Main tells, and panics.
func exhausted(err error, words string) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == codeTold {
		return false
	}
	return !strings.HasPrefix(words, "panic: ") && !strings.Contains(words, "\npanic: ")
}

// read takes an answer.
func read(content []byte) (*render.Result, error) {
	var said answer
	if err := json.Unmarshal(content, &said); err != nil {
		return nil, fmt.Errorf("read the answer of the process that renders: %w", err)
	}
	switch {
	case said.TooLarge:
		return nil, failure{render.ErrTooLarge, text.Line(said.Error, mostSaid)}
	case said.Error != "":
		return nil, failure{render.ErrInvalid, text.Line(said.Error, mostSaid)}
	case said.Result == nil:
		return nil, errors.New("the process that renders has answered nothing")
	}
	return said.Result, nil
}

// failure is an error of the process.
type failure struct {
	kind error
	said string
}

func (f failure) Error() string { return f.said }
func (f failure) Unwrap() error { return f.kind }

// capped keeps the beginning of what is written to it.
type capped struct {
	bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	if free := c.most - c.Len(); free > 0 {
		c.Buffer.Write(p[:min(free, len(p))])
	}
	return len(p), nil
}
