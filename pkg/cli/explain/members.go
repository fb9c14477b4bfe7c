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
	told := func(Cluster) string { return "" }
	if r.Live {
		told = r.told
		fmt.Fprintf(out, "\nCLUSTER\tWANTED\tTOLD\tRUNS\tAVAILABLE\tUPDATED\tSTATE\tHELD BACK\n")
	} else {
		fmt.Fprintf(out, "\nCLUSTER\tWANTED\tRUNS\tAVAILABLE\tUPDATED\tSTATE\tHELD BACK\n")
	}
	for _, c := range r.Clusters {
		if c.Member == nil {
			continue
		}
		wanted := verdict.Share(c.Share, r.Everywhere)
		if c.Share != nil && r.ordinals {
			wanted += ordinals(c.Share.Ordinals(r.firstOrdinal))
		}
		runs, available := c.runs()
		if c.Member.Recorded != nil && r.ordinals {
			runs += ordinals(c.Member.Recorded.Ordinals(0)) // the status counts ordinals as they are
		}
		fmt.Fprintf(out, "%s\t%s\t%s%s\t%s\t%s\t%s\t%s\n",
			c.Name, wanted, told(c), runs, available, c.updated(), r.stateOf(*c.Member), cmp.Or(c.held(), nothing))
	}
}

// told is how many replicas the cluster was told to run, and which.
func (r *Report) told(c Cluster) string {
	switch {
	case !c.Member.Holds:
		return nothing + "\t"
	case r.Everywhere:
		return verdict.Share(c.Share, true) + "\t"
	case r.ordinals:
		return fmt.Sprint(c.Member.Told) + ordinals(c.Member.Ordinals) + "\t"
	}
	return fmt.Sprint(c.Member.Told) + "\t"
}

// runs is how many replicas the cluster runs, and how many of these serve: as the server sees it, or as it was recorded.
func (c Cluster) runs() (runs, available string) {
	switch {
	case c.Member.Connected && c.Member.Shown && c.Member.Holds:
		return fmt.Sprint(c.Member.Running), fmt.Sprint(c.Member.Available)
	case c.Status != nil:
		return fmt.Sprint(c.Status.Replicas), fmt.Sprint(c.Status.Available)
	}
	return nothing, nothing
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
func (r *Report) stateOf(m moves.Member) string {
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
	switch {
	case !r.Live:
	case !m.Connected && !m.Silent:
		parts = append(parts, "not connected")
	case m.Connected && !m.Synced:
		parts = append(parts, "being read")
	case m.Writing != nil, !m.Reserved.Empty():
		parts = append(parts, "being told")
	}
	if m.Failed {
		parts = append(parts, "failed")
	}
	return cmp.Or(strings.Join(parts, ", "), nothing)
}

// held says why a cluster does not have yet what was decided, "" if nothing is said of that. A cluster may have worded it.
func (c Cluster) held() string {
	var problem, waits string
	if c.Next != nil {
		waits = c.Next.Reason
	}
	if c.Status != nil {
		problem, waits = c.Status.Problem, cmp.Or(waits, c.Status.Waits)
	}
	parts := []string{text.Line(problem, longestMessage), text.Line(waits, longestMessage)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
