package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// report is everything that a run has found.
type report struct {
	// Stock is empty when that side was not run.
	Stock       []result     `json:"stock,omitempty"`
	Logical     []result     `json:"logical,omitempty"`
	Differences []difference `json:"differences"`
	// Outdated are the names of specs that pass on the logical cluster and are written down as differences.
	Outdated []string `json:"outdated,omitempty"`
}

// unexplained counts the differences that are not written down.
func (r *report) unexplained() int {
	n := 0
	for _, d := range r.Differences {
		if !d.Known {
			n++
		}
	}
	return n
}

func (r *report) write(file string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (r *report) print(out io.Writer) {
	printSide(out, sideStock, r.Stock)
	printSide(out, sideLogical, r.Logical)
	if len(r.Logical) == 0 {
		return
	}
	fmt.Fprintf(out, "\nPassed on stock, not passed on logical: %d, of which docs/conformance.md explains %d\n",
		len(r.Differences), len(r.Differences)-r.unexplained())
	for _, d := range r.Differences {
		explained := ""
		if d.Known {
			explained = " (explained)"
		}
		fmt.Fprintf(out, "  %s%s\n    %s\n    %s\n    %s\n", d.Name, explained, firstLine(d.Message), d.Location, d.Log)
	}
	if len(r.Outdated) > 0 {
		fmt.Fprintf(out, "\nPassed, so take them out of docs/conformance.md:\n  %s\n", strings.Join(r.Outdated, "\n  "))
	}
}

func printSide(out io.Writer, side string, results []result) {
	if len(results) == 0 {
		return
	}
	passed := 0
	fmt.Fprintf(out, "\n%s:\n", side)
	for _, r := range results {
		if r.State == statePassed {
			passed++
		}
		fmt.Fprintf(out, "  %-8s %5.0fs  %s\n", r.State, r.Seconds, r.Name)
	}
	fmt.Fprintf(out, "%s: %d of %d passed\n", side, passed, len(results))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// readNames reads a file of names, one on each line. A file that is missing has none.
func readNames(file string) ([]string, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the specs that pass on a stock cluster: %w", err)
	}
	return strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' }), nil
}

func writeNames(file string, names []string) error {
	if err := os.WriteFile(file, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the specs that pass on a stock cluster: %w", err)
	}
	return nil
}
