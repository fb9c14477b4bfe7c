package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/verdict"
)

// longestMessage bounds what an event takes of the screen.
const longestMessage = 1024

// print writes the report as json, as yaml, or as a text for people.
func (r *Report) print(out io.Writer, format output.Format) error {
	return format.Print(out, r, func(out io.Writer) error { return r.text(out, time.Now()) })
}

func (r *Report) text(out io.Writer, now time.Time) error {
	tab := printers.GetNewTabWriter(out)
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	fmt.Fprintf(tab, "%s %s\n", r.Kind, name)
	if r.Note != "" {
		fmt.Fprintf(tab, "\n%s\n", verdict.Sentence(r.Note))
	}
	if r.Replicas != nil {
		r.placing(tab)
	}
	if r.Whole {
		r.copies(tab)
	} else if len(r.Clusters) > 0 {
		fmt.Fprintf(tab, "\nCLUSTER\tSHARE\tREADY\tUPDATED\tVERDICT\n")
		for _, c := range r.Clusters {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", c.Name, verdict.Share(c.Share, r.Everywhere), c.ready(r.Everywhere), c.updated(), c.verdict())
		}
	}
	var names []string
	remedies := map[string][]string{}
	for _, c := range r.Clusters {
		names, remedies[c.Name] = append(names, c.Name), c.Remedies
	}
	verdict.Remedies(tab, names, remedies)
	if len(r.Events) > 0 {
		fmt.Fprintf(tab, "\nAGE\tTYPE\tREASON\tEVENT\n")
		for _, e := range r.Events {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", duration.HumanDuration(now.Sub(e.Last.Time)), e.Type, e.Reason, text.Line(e.Message, longestMessage))
		}
	}
	return tab.Flush()
}

// copies writes which clusters have an object of a custom kind, and how it fares there.
func (r *Report) copies(out io.Writer) {
	if len(r.Clusters) == 0 {
		return
	}
	fmt.Fprintf(out, "\nCLUSTER\tCOPY\tSTATE\tVERDICT\n")
	for _, c := range r.Clusters {
		has, state, verdict := "no", cmp.Or(c.State, nothing), cmp.Or(c.obstacles(), "can have it")
		switch {
		case c.Status != nil && c.Status.Generation > 0:
			has, verdict = "yes", cmp.Or(c.obstacles(), nothing)
		case c.Share != nil:
			has = "wanted"
		}
		if c.Status != nil && c.Status.Stale {
			state += " (last known)"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", c.Name, has, state, verdict)
	}
}

// obstacles says what keeps a copy away, "" if nothing does.
func (c Cluster) obstacles() string {
	var parts []string
	if c.Status != nil && c.Status.Problem != "" {
		parts = append(parts, c.Status.Problem)
	}
	if len(c.Why) > 0 {
		parts = append(parts, strings.Join(c.Why, ", "))
	}
	return strings.Join(parts, "; ")
}

// placing writes what was decided and by which rule.
func (r *Report) placing(out io.Writer) {
	switch {
	case r.Whole:
		fmt.Fprintln(out)
	case r.Everywhere:
		fmt.Fprintf(out, "\nReplicas:\tas the nodes of each cluster say\n")
	default:
		fmt.Fprintf(out, "\nReplicas:\t%d asked for\n", *r.Replicas)
	}
	fmt.Fprintf(out, "Placed:\t%s\n", cmp.Or(verdict.Shares(r.Decision, r.Everywhere || r.Whole, r.firstOrdinal), "nowhere"))
	if r.Move != "" {
		fmt.Fprintf(out, "Move:\t%s\n", verdict.Sentence(r.Move))
	}
	if r.Pin != "" {
		fmt.Fprintf(out, "Pin:\t%s, set on the %s\n", r.Pin, r.PinnedBy)
	}
	if r.Policy != "" {
		fmt.Fprintf(out, "Policy:\t%s\n", r.Policy)
	}
	if r.Strategy != "" {
		fmt.Fprintf(out, "Strategy:\t%s\n", r.Strategy)
	}
	switch {
	case r.Due != nil:
		fmt.Fprintf(out, "Due:\t%s That differs from where it is now.\n", verdict.Sentence(r.Message))
	case r.Message != "":
		fmt.Fprintf(out, "Result:\t%s\n", verdict.Sentence(r.Message))
	}
}

// nothing stands in a column that has no value.
const nothing = "-"

func (c Cluster) ready(everywhere bool) string {
	if c.Status == nil {
		return nothing
	}
	if c.Status.Ended != "" {
		return c.Status.Ended
	}
	of := c.Status.Replicas
	if c.Share != nil && !everywhere {
		of = c.Share.Replicas
	}
	text := fmt.Sprintf("%d/%d", c.Status.Ready, of)
	if c.Status.Stale {
		text += " (last known)"
	}
	return text
}

func (c Cluster) updated() string {
	if c.Status == nil {
		return nothing
	}
	return fmt.Sprint(c.Status.Updated)
}

// verdict says what keeps replicas away, or how many more would fit.
func (c Cluster) verdict() string {
	var parts []string
	if c.Status != nil && c.Status.Problem != "" {
		parts = append(parts, c.Status.Problem)
	}
	if c.Status != nil && c.Status.Waits != "" {
		parts = append(parts, c.Status.Waits)
	}
	if c.Verdict != nil {
		parts = append(parts, verdict.Text(*c.Verdict))
	}
	return cmp.Or(strings.Join(parts, "; "), nothing)
}
