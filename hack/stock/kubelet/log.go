package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logLine is a line with the time it was printed.
type logLine struct {
	at   time.Time
	text string
}

// logBuffer holds what a container printed and wakes those who follow it.
type logBuffer struct {
	mu sync.Mutex
	// lines and more are guarded by mu. more is closed, and replaced, when a line comes.
	lines []logLine
	more  chan struct{}
}

func newLogBuffer() *logBuffer {
	return &logBuffer{more: make(chan struct{})}
}

func (b *logBuffer) append(at time.Time, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, logLine{at: at, text: text})
	close(b.more)
	b.more = make(chan struct{})
}

// from returns the lines from the given number on, and a channel that is closed when there are more.
func (b *logBuffer) from(n int) ([]logLine, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[n:len(b.lines):len(b.lines)], b.more
}

// follow calls print with the lines from the given number on, as they come, until print fails or the context ends. What came before
// that end is printed all the same.
func (b *logBuffer) follow(ctx context.Context, n int, print func([]logLine) error) error {
	for {
		lines, more := b.from(n)
		if err := print(lines); err != nil {
			return err
		}
		n += len(lines)
		select {
		case <-ctx.Done():
			rest, _ := b.from(n)
			return print(rest)
		case <-more:
		}
	}
}

func (b *logBuffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}

func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	options, err := parseLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	target, err := s.find(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if options.Previous {
		before, ok := s.previous(target)
		if !ok {
			http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", target.spec.Name, target.pod.Name), http.StatusBadRequest)
			return
		}
		target, options.Follow = before, false
	} else if err := mayLog(target); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Errors from here on mean that the client has gone.
	_ = s.writeLogs(r.Context(), w, target, options)
}

// parseLogOptions reads the options that an API server passes on.
func parseLogOptions(query url.Values) (*corev1.PodLogOptions, error) {
	options := &corev1.PodLogOptions{}
	for name, field := range map[string]*bool{
		"follow": &options.Follow, "previous": &options.Previous, "timestamps": &options.Timestamps,
	} {
		if text := query.Get(name); text != "" {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return nil, fmt.Errorf("log option %s: %w", name, err)
			}
			*field = value
		}
	}
	for name, field := range map[string]**int64{
		"sinceSeconds": &options.SinceSeconds, "tailLines": &options.TailLines, "limitBytes": &options.LimitBytes,
	} {
		if text := query.Get(name); text != "" {
			value, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("log option %s: %w", name, err)
			}
			*field = &value
		}
	}
	if text := query.Get("sinceTime"); text != "" {
		value, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("log option sinceTime: %w", err)
		}
		options.SinceTime = &metav1.Time{Time: value}
	}
	return options, nil
}

// mayLog repeats a kubelet's refusals, in its words.
func mayLog(target *container) error {
	status := containerStatus(target.pod, target.spec.Name)
	switch {
	case status == nil:
		return fmt.Errorf("container %q in pod %q is not available", target.spec.Name, target.pod.Name)
	case status.State.Waiting != nil:
		return fmt.Errorf("container %q in pod %q is waiting to start: %s", target.spec.Name, target.pod.Name, status.State.Waiting.Reason)
	}
	return nil
}

func (s *Server) writeLogs(ctx context.Context, w http.ResponseWriter, target *container, options *corev1.PodLogOptions) error {
	printer := &logPrinter{out: w, flush: http.NewResponseController(w).Flush, timestamps: options.Timestamps, limit: options.LimitBytes}
	lines, _ := target.log.from(0)
	total := len(lines)
	if err := printer.print(tail(since(lines, options, time.Now()), options.TailLines)); err != nil || !options.Follow {
		return err
	}
	lives, done := s.whilePodLives(ctx, target.pod)
	defer done()
	return target.log.follow(lives, total, printer.print)
}

func since(lines []logLine, options *corev1.PodLogOptions, now time.Time) []logLine {
	var earliest time.Time
	if options.SinceSeconds != nil {
		earliest = now.Add(-time.Duration(*options.SinceSeconds) * time.Second)
	}
	if options.SinceTime != nil && options.SinceTime.After(earliest) {
		earliest = options.SinceTime.Time
	}
	for len(lines) > 0 && lines[0].at.Before(earliest) {
		lines = lines[1:]
	}
	return lines
}

func tail(lines []logLine, n *int64) []logLine {
	if n == nil || int64(len(lines)) <= *n {
		return lines
	}
	return lines[int64(len(lines))-*n:]
}

// logPrinter writes lines out, up to a number of bytes.
type logPrinter struct {
	out        io.Writer
	flush      func() error
	timestamps bool
	// limit is how many bytes are left, or nil for any number.
	limit *int64
}

func (p *logPrinter) print(lines []logLine) error {
	for _, line := range lines {
		text := line.text + "\n"
		if p.timestamps {
			text = line.at.UTC().Format(time.RFC3339Nano) + " " + text
		}
		if p.limit != nil {
			text = text[:min(int64(len(text)), *p.limit)]
			*p.limit -= int64(len(text))
		}
		if _, err := io.WriteString(p.out, text); err != nil {
			return err
		}
		if p.limit != nil && *p.limit == 0 {
			return io.EOF
		}
	}
	return p.flush()
}
