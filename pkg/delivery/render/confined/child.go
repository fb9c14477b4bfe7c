package confined

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

const (
	// name is what the process is started as.
	name = "manifold-render"
	// codeTold is the exit code of a process that has told an error.
	codeTold = 1
)

// request is what the process reads, answer what it writes.
type request struct {
	Bundle  *render.Bundle
	Options render.Options
	Bounds  Bounds
}

type answer struct {
	Result *render.Result
	// Error is why there is none, TooLarge that it exceeds a bound.
	Error    string
	TooLarge bool
}

// Asked reports whether this process has been started to render. Whoever is asked calls Main, before anything else, and nothing after it.
func Asked() bool { return len(os.Args) > 0 && os.Args[0] == name }

// Main renders what the standard input asks for, and ends the process.
func Main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(codeTold)
	}
	os.Exit(0)
}

func serve(in io.Reader, out io.Writer) error {
	var asked request
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&asked.Bounds); err != nil {
		return fmt.Errorf("read the bounds: %w", err)
	}
	if err := confine(asked.Bounds); err != nil {
		return err
	}
	if err := decoder.Decode(&asked); err != nil {
		return fmt.Errorf("read what to render: %w", err)
	}
	result, err := render.Render(context.Background(), asked.Bundle, asked.Options)
	said := answer{Result: result}
	if err != nil {
		said = answer{Error: err.Error(), TooLarge: errors.Is(err, render.ErrTooLarge)}
	}
	return json.NewEncoder(out).Encode(said)
}

// confine takes from this process what a rendering does not need.
func confine(bounds Bounds) error {
	debug.SetMemoryLimit(bounds.Memory * 3 / 4) // collect before the limit ends the process
	if err := limit(bounds); err != nil {
		return fmt.Errorf("bound the process: %w", err)
	}
	time.AfterFunc(bounds.Time+time.Second, func() { os.Exit(1) }) // even when nobody waits for it any more
	http.DefaultTransport = nowhere{}
	os.Clearenv()
	return nil
}

// nowhere reaches nobody.
type nowhere struct{}

// RoundTrip implements http.RoundTripper.
func (nowhere) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s lies elsewhere and is not fetched", request.URL.Redacted())
}
