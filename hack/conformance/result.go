package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// result is what hack/tools/conformance tells of a spec that was run.
type result struct {
	Name     string  `json:"name"`
	State    string  `json:"state"`
	Seconds  float64 `json:"seconds"`
	Message  string  `json:"message,omitempty"`
	Location string  `json:"location,omitempty"`
	// Output goes into a file of its own.
	Output string `json:"output,omitempty"`
	// Log is that file.
	Log string `json:"log,omitempty"`
}

// States that matter here; there are more ways to fail.
const (
	statePassed  = "passed"
	stateSkipped = "skipped"
)

// collector takes results as they come, tells each in a line, and writes down what is told of failures.
type collector struct {
	dir string
	out io.Writer

	mu      sync.Mutex
	results []result
	passed  int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var result result
	if err := json.NewDecoder(r.Body).Decode(&result); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := c.add(result); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (c *collector) add(r result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Output != "" {
		r.Log = filepath.Join(c.dir, fileName(r.Name))
		if err := os.WriteFile(r.Log, []byte(r.Message+"\n"+r.Location+"\n\n"+r.Output), 0o644); err != nil {
			return fmt.Errorf("write the output of %q: %w", r.Name, err)
		}
		r.Output = ""
	}
	if r.State == statePassed {
		c.passed++
	}
	c.results = append(c.results, r)
	fmt.Fprintf(c.out, "%4d run, %d passed: %s after %.0fs: %s\n", len(c.results), c.passed, r.State, r.Seconds, r.Name)
	return nil
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.results)
}

// all returns the results sorted by name.
func (c *collector) all() []result {
	c.mu.Lock()
	defer c.mu.Unlock()
	results := slices.Clone(c.results)
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	return results
}

var notInFileNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// fileName makes a file name of a spec's name.
func fileName(name string) string {
	name = strings.TrimSuffix(name, " [Conformance]")
	base := strings.Trim(notInFileNames.ReplaceAllString(name, "-"), "-")
	return base[:min(len(base), 200)] + ".log"
}
