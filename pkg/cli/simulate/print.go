package simulate

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Report is what was found out.
type Report struct {
	// Without are the clusters that were lost.
	Without   []string `json:"without,omitempty"`
	Workloads []Entry  `json:"workloads"`
}

// Entry is one workload.
type Entry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Replicas  int32  `json:"replicas"`
	// Before is where it ran with all clusters, if some were lost.
	Before placement.Decision `json:"before,omitempty"`
	// Result is the decision and what led to it.
	Result placement.Result `json:"result"`
	// Message is the result in one sentence.
	Message string `json:"message"`
}

func entryOf(w *workload, result placement.Result) Entry {
	return Entry{Kind: w.GVK.Kind, Namespace: w.Namespace, Name: w.Name, Replicas: w.Replicas, Result: result}
}

// print writes the report as json, as yaml, or as a text for people.
func (r *Report) print(out io.Writer, format output.Format) error {
	for i := range r.Workloads {
		r.Workloads[i].Message = r.Workloads[i].Result.Message()
	}
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
	return tab.Flush()
}

func (e *Entry) text(out io.Writer, lost []string) {
	fmt.Fprintf(out, "%s %s/%s\n\n", e.Kind, e.Namespace, e.Name)
	if e.Result.Strategy != placement.EachCluster {
		fmt.Fprintf(out, "Replicas:\t%d asked for\n", e.Replicas)
	}
	if len(lost) > 0 {
		fmt.Fprintf(out, "Before:\t%s\n", e.shares(e.Before))
		fmt.Fprintf(out, "Without %s:\t%s\n", strings.Join(lost, ", "), e.shares(e.Result.Decision))
	} else {
		fmt.Fprintf(out, "Placed:\t%s\n", e.shares(e.Result.Decision))
	}
	if e.Result.Policy != "" {
		fmt.Fprintf(out, "Policy:\t%s\n", e.Result.Policy)
	}
	fmt.Fprintf(out, "Strategy:\t%s\n", e.Result.Strategy)
	fmt.Fprintf(out, "Result:\t%s.\n", strings.ToUpper(e.Message[:1])+e.Message[1:])
	fmt.Fprintf(out, "\nCLUSTER\tSHARE\tGROUP\tPREFERENCE\tSCORE\tVERDICT\n")
	for _, v := range e.Result.Verdicts {
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%s\n", v.Cluster, e.share(v), cmp.Or(v.Group, "-"), v.Preference, v.Score, verdict(v))
	}
}

// shares lists shares: "3 on east, 2 on west".
func (e *Entry) shares(d placement.Decision) string {
	var texts []string
	for _, name := range d.Clusters() {
		if e.Result.Strategy == placement.EachCluster {
			texts = append(texts, name)
		} else {
			texts = append(texts, fmt.Sprintf("%d on %s", d[name].Replicas, name))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "nowhere")
}

func (e *Entry) share(v placement.Verdict) string {
	switch {
	case v.Share == nil:
		return "-"
	case e.Result.Strategy == placement.EachCluster:
		return "all"
	}
	return fmt.Sprint(v.Share.Replicas)
}

// verdict says what keeps replicas away, or how many more fit beside those that were there before.
func verdict(v placement.Verdict) string {
	if len(v.Reasons) == 0 {
		return fmt.Sprintf("has room for %d", v.Fits)
	}
	var texts []string
	for _, reason := range v.Reasons {
		texts = append(texts, reason.String())
	}
	return strings.Join(texts, ", ")
}
