package simulate

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/verdict"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// print writes the report as json, as yaml, or as a text for people.
func (r *Report) print(out io.Writer, format output.Format) error {
	return format.Print(out, r, r.text)
}

func (r *Report) text(out io.Writer) error {
	tab := printers.GetNewTabWriter(out)
	for i := range r.Workloads {
		if i > 0 {
			fmt.Fprintln(tab)
		}
		r.Workloads[i].text(tab, r.Without)
	}
	if len(r.Workloads) > 0 && r.footer() != "" {
		fmt.Fprintln(tab)
	}
	fmt.Fprint(tab, r.footer())
	return tab.Flush()
}

// footer says what there is beside the workloads that are told of.
func (r *Report) footer() (text string) {
	if r.Note != "" {
		text = verdict.Sentence(r.Note) + "\n"
	}
	workloads, stay := "workloads", "stay"
	if r.Unchanged == 1 {
		workloads, stay = "workload", "stays"
	}
	others := "other "
	if len(r.Workloads) == 0 {
		others = ""
	}
	if r.Unchanged > 0 {
		text += fmt.Sprintf("%d %s%s %s as before", r.Unchanged, others, workloads, stay)
		if r.Unplaced > 0 {
			text += fmt.Sprintf(", %d of them with replicas that have no cluster", r.Unplaced)
		}
		text += ".\n"
	}
	return text
}

func (e *Entry) text(out io.Writer, lost []string) {
	everywhere := e.Result.Strategy == placement.EachCluster
	shares := func(d placement.Decision) string { return cmp.Or(verdict.Shares(d, everywhere, e.first), "nowhere") }
	fmt.Fprintf(out, "%s %s/%s\n\n", e.Kind, e.Namespace, e.Name)
	if !everywhere {
		fmt.Fprintf(out, "Replicas:\t%d asked for\n", e.Replicas)
	}
	placed := "Placed"
	if len(lost) > 0 {
		placed = "Without " + strings.Join(lost, ", ")
	}
	if len(e.Before) > 0 || len(lost) > 0 {
		fmt.Fprintf(out, "Before:\t%s\n", shares(e.Before))
	}
	fmt.Fprintf(out, "%s:\t%s\n", placed, shares(e.Result.Decision))
	if len(e.Down) > 0 {
		fmt.Fprintf(out, "Down:\t%s\n", shares(e.Down))
	}
	if e.Result.Policy != "" {
		fmt.Fprintf(out, "Policy:\t%s\n", e.Result.Policy)
	}
	fmt.Fprintf(out, "Strategy:\t%s\n", e.Result.Strategy)
	for _, step := range e.Steps {
		fmt.Fprintf(out, "First:\t%s\n", verdict.Sentence(step))
	}
	fmt.Fprintf(out, "Result:\t%s\n", verdict.Sentence(e.Message))
	for _, told := range e.Told {
		fmt.Fprintf(out, "Preempted:\t%s\n", verdict.Sentence(told))
	}
	fmt.Fprintf(out, "\nCLUSTER\tSHARE\tVERDICT\n")
	names := make([]string, 0, len(e.Result.Verdicts))
	for _, v := range e.Result.Verdicts {
		fmt.Fprintf(out, "%s\t%s\t%s\n", v.Cluster, verdict.Share(v.Share, everywhere), verdict.Text(v))
		names = append(names, v.Cluster)
	}
	verdict.Remedies(out, names, e.Remedies)
}
