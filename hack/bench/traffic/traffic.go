// Package traffic measures what becomes of requests while Manifold moves what answers them.
//
// Two stock clusters whose pods are servers stand behind one logical cluster. In every scenario clients ask one Service at a steady rate, from
// inside of each cluster, by the endpoints that the logical cluster has, and through gateways if asked for, while something happens to the
// Deployment behind it: a move, a drain, a rollout, the loss of a cluster. Where clusters share a network (Cluster.spec.network), clients of a cluster
// reach what runs in the other.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
)

// Options say what to measure.
type Options struct {
	// Manifold is the binary, Root the repository, BinDir has the stock programs, and Dir takes what all processes write.
	Manifold, Root, BinDir, Dir string
	// Gateway is the gateway's binary. Without it nothing comes from outside.
	Gateway string
	// Rate is how many requests each client sends in a second.
	Rate int
	// Only are the names of scenarios; empty means all.
	Only []string
	// Progress is told how far it is.
	Progress io.Writer
}

// Report is everything measured.
type Report struct {
	Time time.Time `json:"time"`
	// Shared tells whether the clusters shared a network.
	Shared bool  `json:"shared"`
	Rows   []Row `json:"rows"`
}

// Row is what one client counted in one scenario.
type Row struct {
	Scenario string      `json:"scenario"`
	Client   string      `json:"client"`
	Counted  load.Report `json:"counted"`
	// Last is how many seconds after the scenario's event the last failed request was sent, and 0 if none failed after it. Bound is how many it may be.
	Last  float64 `json:"last,omitempty"`
	Bound float64 `json:"bound,omitempty"`
	// Shares are what parts of the requests went to a canary.
	Shares []Share `json:"shares,omitempty"`
	// Delays are how long after a pod was ready somebody in the other cluster had an answer from it.
	Delays []time.Duration `json:"delays,omitempty"`
	// Error says why the scenario came to no end or, for a client, why it had no answer before it began.
	Error string `json:"error,omitempty"`
}

// Run measures all scenarios, one after another. Where that ends early, the report has what was measured until then.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	chosen, err := choose(o)
	if err != nil {
		return nil, err
	}
	s, err := newSite(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	report := &Report{Time: time.Now().UTC().Truncate(time.Second), Shared: s.shared}
	for i, sc := range chosen {
		fmt.Fprintf(o.Progress, "bench: %s\n", sc.name)
		r := &run{site: s, scenario: sc, namespace: fmt.Sprintf("traffic-%d", i)}
		rows, err := r.measure(ctx)
		if err != nil {
			rows = append(rows, Row{Scenario: sc.name, Error: err.Error()})
		}
		report.Rows = append(report.Rows, rows...)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
	}
	return report, nil
}

// choose returns the scenarios that are asked for.
func choose(o Options) (chosen []scenario, err error) {
	known := Names()
	for _, name := range o.Only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no scenario %q; there are %q", name, known)
		}
	}
	for _, sc := range scenarios() {
		named := slices.Contains(o.Only, sc.name)
		switch {
		case len(o.Only) > 0 && !named:
		case !sc.gateways || o.Gateway != "":
			chosen = append(chosen, sc)
		case named:
			return nil, fmt.Errorf("scenario %q is about gateways, and there are none: add -gateway", sc.name)
		}
	}
	return chosen, nil
}

// Print prints the table.
func (r *Report) Print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "scenario\tclient\trequests\tfailed\tslow\tmisrouted\tmedian\t99 %\tlast failure\tanswered by\t\n")
	for _, row := range r.Rows {
		if row.Counted.Sent == 0 {
			continue
		}
		c := row.Counted
		last := ""
		if row.Last > 0 {
			last = fmt.Sprintf("%.1f s", row.Last)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t\n", row.Scenario, row.Client, c.Sent, c.Failed, c.Slow, c.Misrouted,
			milliseconds(c.Median), milliseconds(c.P99), last, load.List(c.Clusters))
	}
	table.Flush()
	if !r.Shared {
		fmt.Fprintln(out, "\nThe clusters share no network: a client reaches a Service in its own cluster alone.")
	}
	for _, row := range r.Rows {
		if row.Error != "" {
			fmt.Fprintf(out, "\n%s\n", strings.Join(slices.DeleteFunc([]string{row.Scenario, row.Client, row.Error}, func(s string) bool { return s == "" }), ": "))
		}
		if text := row.found(); text != "" {
			fmt.Fprintf(out, "\n%s, %s: %s\n", row.Scenario, row.Client, text)
		}
		for _, why := range []map[string]int{row.Counted.Reasons, row.Counted.Wrong} {
			if len(why) > 0 {
				fmt.Fprintf(out, "%s, %s: %s\n", row.Scenario, row.Client, load.List(why))
			}
		}
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
