package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/manifold-dev/manifold/pkg/cli/output"
)

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
		fmt.Fprintf(tab, "\n%s\n", sentence(r.Note))
	}
	if r.Replicas != nil {
		r.placing(tab)
	}
	if r.Whole {
		r.copies(tab)
	} else if len(r.Clusters) > 0 {
		fmt.Fprintf(tab, "\nCLUSTER\tSHARE\tREADY\tUPDATED\tVERDICT\n")
		for _, c := range r.Clusters {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.share(r.Everywhere), c.ready(r.Everywhere), c.updated(), c.verdict())
		}
	}
	r.remedies(tab)
	if len(r.Events) > 0 {
		fmt.Fprintf(tab, "\nAGE\tTYPE\tREASON\tEVENT\n")
		for _, e := range r.Events {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", duration.HumanDuration(now.Sub(e.Last.Time)), e.Type, e.Reason, e.Message)
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
	fmt.Fprintf(out, "Placed:\t%s\n", cmp.Or(r.placed(), "nowhere"))
	if r.Move != "" {
		fmt.Fprintf(out, "Move:\t%s\n", sentence(r.Move))
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
		fmt.Fprintf(out, "Due:\t%s That differs from where it is now.\n", sentence(r.Message))
	case r.Message != "":
		fmt.Fprintf(out, "Result:\t%s\n", sentence(r.Message))
	}
}

// placed lists shares: "3 on east, 2 on west". Of replicas that are divided by their ordinals it says which ones.
func (r *Report) placed() string {
	if r.Everywhere || r.Whole {
		return strings.Join(r.Decision.Clusters(), ", ")
	}
	ranged := slices.ContainsFunc(r.Decision.Clusters(), func(name string) bool { return r.Decision[name].Start > 0 })
	var shares []string
	for _, name := range r.Decision.Clusters() {
		share := r.Decision[name]
		text := fmt.Sprintf("%d on %s", share.Replicas, name)
		if first := r.firstOrdinal + share.Start; ranged && share.Replicas == 1 {
			text += fmt.Sprintf(" (ordinal %d)", first)
		} else if ranged && share.Replicas > 1 {
			text += fmt.Sprintf(" (ordinals %d-%d)", first, first+share.Replicas-1)
		}
		shares = append(shares, text)
	}
	return strings.Join(shares, ", ")
}

// sentence makes a clause a sentence. The clause may begin with a number.
func sentence(clause string) string {
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}

// nothing stands in a column that has no value.
const nothing = "-"

func (c Cluster) share(everywhere bool) string {
	switch {
	case c.Share == nil:
		return nothing
	case everywhere:
		return "all"
	}
	return fmt.Sprint(c.Share.Replicas)
}

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
	switch {
	case c.Verdict == nil:
	case len(c.Why) > 0:
		parts = append(parts, strings.Join(c.Why, ", ")+c.standing())
	case c.Verdict.Fits == 1:
		parts = append(parts, "has room for 1 more replica"+c.ranking())
	default:
		parts = append(parts, fmt.Sprintf("has room for %d more replicas", c.Verdict.Fits)+c.ranking())
	}
	return cmp.Or(strings.Join(parts, "; "), nothing)
}

// remedies writes what would have to change so that other clusters get some of it too.
func (r *Report) remedies(out io.Writer) {
	header := "\nCLUSTER\tTO RUN IT THERE, OR MORE OF IT\n"
	for _, c := range r.Clusters {
		if len(c.Remedies) > 0 {
			fmt.Fprintf(out, "%s%s\t%s\n", header, c.Name, strings.Join(c.Remedies, "; and "))
			header = ""
		}
	}
}

// ranking says how a cluster ranks among the others, and how the policy does that.
func (c Cluster) ranking() string {
	return " (" + strings.Join(append(c.rank(), fmt.Sprintf("score %d", c.Verdict.Score)), ", ") + ")"
}

// standing says how the policy ranks a cluster that has no score, as it may take nothing; "" if it does not.
func (c Cluster) standing() string {
	if rank := c.rank(); len(rank) > 0 {
		return " (" + strings.Join(rank, ", ") + ")"
	}
	return ""
}

func (c Cluster) rank() (parts []string) {
	if c.Verdict.Group != "" {
		parts = append(parts, "group "+c.Verdict.Group)
	}
	if c.Verdict.Preference != 0 {
		parts = append(parts, fmt.Sprintf("preference %d", c.Verdict.Preference))
	}
	return parts
}
