package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/verdict"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// members writes what is known of each cluster on the way to what was decided, and why it is not there yet; nothing while nothing is on its way.
func (r *Report) members(out io.Writer) {
	if !slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return c.Member != nil }) {
		return
	}
	fmt.Fprintf(out, "\nCLUSTER\tWANTED\tRUNS\tAVAILABLE\tUPDATED\tSTATE\tHELD BACK\n")
	for _, c := range r.Clusters {
		if c.Member == nil {
			continue
		}
		wanted, runs, available := verdict.Share(c.Share, r.Everywhere), nothing, nothing
		if c.Share != nil && r.ordinals {
			wanted += ordinals(c.Share.Ordinals(r.firstOrdinal))
		}
		if c.Status != nil {
			runs, available = fmt.Sprint(c.Status.Replicas), fmt.Sprint(c.Status.Available)
		}
		if c.Member.Recorded != nil && r.ordinals {
			runs += ordinals(c.Member.Recorded.Ordinals(0)) // the status counts ordinals as they are
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, wanted, runs, available, c.updated(), stateOf(*c.Member), cmp.Or(c.held(), nothing))
	}
}

// ordinals names those of a range beside their number, "" if there are none.
func ordinals(r placement.Range) string {
	switch {
	case r.Empty():
		return ""
	case r.End-r.Start == 1:
		return fmt.Sprintf(" (%d)", r.Start)
	}
	return fmt.Sprintf(" (%d-%d)", r.Start, r.End-1)
}

// stateOf says what a cluster is to the steps of the others.
func stateOf(m moves.Member) string {
	var parts []string
	switch {
	case m.Forgotten:
		parts = append(parts, "removed by force")
	case m.Leaving:
		parts = append(parts, "being removed")
	}
	switch {
	case m.Lost:
		parts = append(parts, "lost")
	case m.Silent && !m.Forgotten:
		parts = append(parts, "silent")
	}
	if m.Failed {
		parts = append(parts, "failed")
	}
	return cmp.Or(strings.Join(parts, ", "), nothing)
}

// held says why a cluster does not have yet what was decided, "" if nothing is said of that. A cluster may have worded it.
func (c Cluster) held() string {
	if c.Status == nil {
		return ""
	}
	parts := []string{text.Line(c.Status.Problem, longestMessage), text.Line(c.Status.Waits, longestMessage)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
