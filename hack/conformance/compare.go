package main

import (
	"slices"
	"strings"
)

// difference is a spec that passes on a stock cluster and was run and did not pass on the logical one.
type difference struct {
	result
	// Known is that the differences that are written down have it.
	Known bool `json:"known"`
}

// differences compares the names of what passes on a stock cluster with results of the logical one. The text known
// names those that are explained.
func differences(passing []string, logical []result, known string) []difference {
	var found []difference
	for _, r := range logical {
		if r.State == statePassed || !slices.Contains(passing, r.Name) {
			continue
		}
		found = append(found, difference{result: r, Known: isKnown(r.Name, known)})
	}
	return found
}

// renew returns the names of what passes, sorted, given those of before and new results. Specs that were not run stay as they were.
func renew(passing []string, results []result) []string {
	run := map[string]bool{}
	var renewed []string
	for _, r := range results {
		run[r.Name] = true
		if r.State == statePassed {
			renewed = append(renewed, r.Name)
		}
	}
	for _, name := range passing {
		if !run[name] {
			renewed = append(renewed, name)
		}
	}
	slices.Sort(renewed)
	return slices.Compact(renewed)
}

// outdated returns the names of specs that pass although the text known explains why they do not.
func outdated(logical []result, known string) []string {
	var names []string
	for _, r := range logical {
		if r.State == statePassed && isKnown(r.Name, known) {
			names = append(names, r.Name)
		}
	}
	return names
}

// isKnown reports whether a text names a spec, in backquotes.
func isKnown(name, text string) bool {
	return strings.Contains(text, "`"+name+"`")
}
