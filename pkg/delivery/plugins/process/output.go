package process

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// mostLine bounds a line of what programs write; the rest of a longer one is left out.
	mostLine = 4 << 10
	// keptLines is how many lines are kept for those who ask what came last.
	keptLines = 50
	// outputRate is how many bytes a second are taken of a program for long, and outputBurst at once. One that writes more waits, as it would for a slow disk.
	outputRate  = 256 << 10
	outputBurst = 1 << 20
	// mostLog is the size of a log in MiB at which the next one is begun, keptLogs how many are kept beside it.
	mostLog  = 10
	keptLogs = 2
)

// Output keeps what programs write, line by line: in a file, and the last lines in memory.
type Output struct {
	file  io.WriteCloser
	clock clock.PassiveClock
	pace  *rate.Limiter

	mu   sync.Mutex
	last []string
	// cry is the last line by which a program of Go says why it ends, which a long trace follows.
	cry string
	// rest is a line whose end has not come yet. It is dropped from mostLine on, until its end comes.
	rest    []byte
	dropped bool
}

// NewOutput returns an output whose file has a path. Its folder is made if need be.
func NewOutput(file string, clock clock.PassiveClock) (*Output, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return &Output{
		file:  &lumberjack.Logger{Filename: file, MaxSize: mostLog, MaxBackups: keptLogs},
		clock: clock, pace: rate.NewLimiter(outputRate, outputBurst),
	}, nil
}

// Write takes what a program has written. It never fails, so that a full disk does not end a program.
func (o *Output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), outputBurst)]
		rest = rest[len(part):]
		_ = o.pace.WaitN(context.Background(), len(part)) // which fails for more than the burst alone
		o.take(part)
	}
	return len(p), nil
}

func (o *Output) take(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		p = rest
		if free := mostLine - len(o.rest); len(line) > free {
			line, o.dropped = line[:free], true
		}
		o.rest = append(o.rest, line...)
		if ended {
			o.end()
		}
	}
}

// end ends the line that is being written.
func (o *Output) end() {
	said := string(bytes.TrimRight(o.rest, "\r"))
	if o.dropped {
		said += "..."
	}
	o.rest, o.dropped = o.rest[:0], false
	o.keep(said)
}

func (o *Output) keep(line string) {
	line = text.Escape(line)
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		o.cry = line
	}
	if o.last = append(o.last, line); len(o.last) > keptLines {
		o.last = append(o.last[:0], o.last[1:]...)
	}
	_, _ = io.WriteString(o.file, o.clock.Now().UTC().Format(time.RFC3339)+" "+line+"\n")
}

// ours is what lines begin with that the program has not written.
const ours = "manifold: "

// Note writes a line of our own.
func (o *Output) Note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 {
		o.end()
	}
	o.keep(ours + line)
}

// Last returns the last lines, the newest last.
func (o *Output) Last() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := append([]string(nil), o.last...)
	if len(o.rest) > 0 {
		out = append(out, text.Escape(string(o.rest)))
	}
	return out
}

// frame is a line that says where a function is in a trace of Go's calls.
var frame = regexp.MustCompile(`^\t\S+\.go:\d+`)

// LastWords are those that tell most of why a program has ended: what it says of that itself, or else its last lines, at most as many as that.
func (o *Output) LastWords(most int) []string {
	o.mu.Lock()
	cry := o.cry
	o.mu.Unlock()
	if cry != "" {
		return []string{cry}
	}
	var out []string
	for _, line := range o.Last() {
		switch {
		case line == "" || strings.HasPrefix(line, ours):
		case frame.MatchString(line):
			out = out[:max(0, len(out)-1)] // it follows the name of a function, and neither says what is wrong
		default:
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-most):]
}

// Close closes the file.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Close()
}
