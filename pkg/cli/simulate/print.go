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

// text writes all that there is to say of the workloads of the manifests, and a line on each of the others.
func (r *Report) text(out io.Writer) error {
	tab := printers.GetNewTabWriter(out)
	header, between := fmt.Sprintf("WORKLOAD\tBEFORE\t%s\tRESULT\n", strings.ToUpper(r.after())), ""
	for i := range r.Workloads {
		if e := &r.Workloads[i]; e.asked {
			fmt.Fprint(tab, between)
			e.text(tab, r.after())
			between = "\n"
		}
	}
	for i := range r.Workloads {
		if e := &r.Workloads[i]; !e.asked {
			fmt.Fprintf(tab, "%s%s%s\n", between, header, e.line())
			header, between = "", ""
		}
	}
	if footer := r.footer(); footer != "" && len(r.Workloads) > 0 {
		fmt.Fprintf(tab, "\n%s", footer)
	} else {
		fmt.Fprint(tab, footer)
	}
	return tab.Flush()
}

// after names the state that is the result.
func (r *Report) after() string {
	if len(r.Without) > 0 {
		return "Without " + strings.Join(r.Without, ", ")
	}
	return "Placed"
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

// shares writes a decision.
func (e *Entry) shares(d placement.Decision) string {
	return cmp.Or(verdict.Shares(d, e.everywhere(), e.first), "nowhere")
}

func (e *Entry) everywhere() bool { return e.Result.Strategy == placement.EachCluster }

// line is a row of the table.
func (e *Entry) line() string {
	says := verdict.Sentence(e.Message)
	for _, told := range e.Told {
		says += " Preempted: " + told + "."
	}
	after := e.shares(e.Result.Decision)
	if len(e.Down) > 0 {
		after += " (down: " + e.shares(e.Down) + ")"
	}
	return fmt.Sprintf("%s %s/%s\t%s\t%s\t%s", e.Kind, e.Namespace, e.Name, e.shares(e.Before), after, says)
}

func (e *Entry) text(out io.Writer, placed string) {
	fmt.Fprintf(out, "%s %s/%s\n\n", e.Kind, e.Namespace, e.Name)
	if !e.everywhere() {
		fmt.Fprintf(out, "Replicas:\t%d asked for\n", e.Replicas)
	}
	if len(e.Before) > 0 || placed != "Placed" {
		fmt.Fprintf(out, "Before:\t%s\n", e.shares(e.Before))
	}
	fmt.Fprintf(out, "%s:\t%s\n", placed, e.shares(e.Result.Decision))
	if len(e.Down) > 0 {
		fmt.Fprintf(out, "Down:\t%s\n", e.shares(e.Down))
	}
	if policy := e.Result.Policy.String(); policy != "" {
		fmt.Fprintf(out, "Policy:\t%s\n", policy)
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
		fmt.Fprintf(out, "%s\t%s\t%s\n", v.Cluster, verdict.Share(v.Share, e.everywhere()), verdict.Text(v))
		names = append(names, v.Cluster)
	}
	verdict.Remedies(out, names, e.Remedies)
}
