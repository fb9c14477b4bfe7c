package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/verdict"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// longestMessage bounds what an event, or what a cluster says, takes of the screen.
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
	} else {
		for _, line := range []string{r.Held, r.Awaits} {
			if line != "" {
				fmt.Fprintf(tab, "%s\n", verdict.Sentence(text.Line(line, longestMessage)))
			}
		}
	}
	if r.custom {
		r.copies(tab)
	} else if len(r.Clusters) > 0 {
		r.shares(tab)
	}
	if r.Service != nil {
		r.Service.text(tab)
	}
	r.members(tab)
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

// shares writes what each cluster gets of a workload, and how it fares there.
func (r *Report) shares(out io.Writer) {
	revision := func(string) string { return "" }
	if slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return c.revision() != nothing }) {
		revision = func(column string) string { return column + "\t" }
	}
	fmt.Fprintf(out, "\nCLUSTER\tSHARE\t%sREADY\tUPDATED\tVERDICT\n", revision("REVISION"))
	for _, c := range r.Clusters {
		fmt.Fprintf(out, "%s\t%s\t%s%s\t%s\t%s\n", c.Name, verdict.Share(c.Share, r.Everywhere), revision(c.revision()), c.ready(r.Everywhere), c.updated(), c.verdict())
	}
}

// revision names the revision that the cluster is held at, and the one that it has if that is another.
func (c Cluster) revision() string {
	held, has := nothing, nothing
	if c.Share != nil {
		held = named(c.Share.Revision, c.Share.Target)
	}
	if c.Status != nil {
		has = named(c.Status.Revision, c.Status.Target)
	}
	switch {
	case has == nothing || has == held:
		return held
	case held == nothing && c.Share == nil:
		return has
	}
	return held + ", has " + has
}

// named is a revision with the target of it whose manifests count, unless there is but one.
func named(revision, target string) string {
	switch {
	case revision == "":
		return nothing
	case identity.Revision{Name: revision}.OfView():
		return "of its view"
	case target != "" && target != delivery.DefaultTarget:
		revision = fmt.Sprintf("%s (%s)", revision, target)
	}
	return text.Line(revision, longestMessage)
}

// copies writes which clusters have an object of a custom kind, and how it fares there.
func (r *Report) copies(out io.Writer) {
	if len(r.Clusters) == 0 {
		return
	}
	if r.Whole {
		fmt.Fprintf(out, "\nCLUSTER\tCOPY\tSTATE\tVERDICT\n")
	} else {
		fmt.Fprintf(out, "\nCLUSTER\tSHARE\tCOPY\tSTATE\tVERDICT\n")
	}
	for _, c := range r.Clusters {
		has, state, finding := "no", cmp.Or(c.State, nothing), cmp.Or(c.obstacles(), "can have it")
		switch {
		case c.Status != nil && c.Status.Generation > 0:
			has, finding = "yes", cmp.Or(c.obstacles(), nothing)
		case c.Share != nil:
			has = "wanted"
		}
		if c.Status != nil && c.Status.Stale {
			state += " (last known)"
		}
		if r.Whole {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", c.Name, has, state, finding)
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", c.Name, verdict.Share(c.Share, false), has, state, c.verdict())
	}
}

// obstacles says what keeps a copy away, "" if nothing does.
func (c Cluster) obstacles() string {
	var parts []string
	if c.Status != nil && c.Status.Problem != "" {
		parts = append(parts, text.Line(c.Status.Problem, longestMessage))
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
	if len(r.Requests) > 0 {
		fmt.Fprintf(out, "Each:\t%s\n", amounts(r.Requests))
	}
	fmt.Fprintf(out, "Placed:\t%s\n", cmp.Or(verdict.Shares(r.Decision, r.Everywhere || r.Whole, r.firstOrdinal), "nowhere"))
	if r.Held != "" {
		fmt.Fprintf(out, "Held:\t%s\n", strings.TrimPrefix(text.Line(r.Held, longestMessage), "held "))
	}
	if r.Awaits != "" {
		fmt.Fprintf(out, "Waits:\t%s\n", strings.TrimPrefix(text.Line(r.Awaits, longestMessage), "waits "))
	}
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

// verdict says what keeps replicas away, unless that is said of its member, or how many more would fit.
func (c Cluster) verdict() string {
	var parts []string
	if held := c.held(); held != "" && c.Member == nil {
		parts = append(parts, held)
	}
	if c.Verdict != nil {
		parts = append(parts, verdict.Text(*c.Verdict))
	}
	return cmp.Or(strings.Join(parts, "; "), nothing)
}

// amounts writes what one replica asks for, in the order of the names.
func amounts(of placement.Resources) string {
	var out []string
	for _, need := range of.Needed() {
		quantity := resource.NewQuantity(need.Amount, resource.BinarySI)
		if need.Name == corev1.ResourceCPU {
			quantity = resource.NewMilliQuantity(need.Amount, resource.DecimalSI)
		}
		out = append(out, quantity.String()+" "+string(need.Name))
	}
	return strings.Join(out, ", ")
}
