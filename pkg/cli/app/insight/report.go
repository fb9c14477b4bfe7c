package insight

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery/insight"
)

// nothing stands in a column that has no value.
const nothing = "-"

// report is what the command prints.
type report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Applications are told of one by one.
	Applications []figures `json:"applications"`
	// Total is of all of them together.
	Total insight.Figures `json:"total"`
	// Periods are of all of them together as well.
	Periods []insight.Period `json:"periods,omitempty"`
}

// figures are those of an application.
type figures struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	insight.Figures
	// KeptSince is set if releases of the time are not kept any more: it is when the oldest one ended that is.
	KeptSince *time.Time `json:"keptSince,omitempty"`
}

func newReport(all []kept, by insight.Unit, since, until time.Time) *report {
	out := &report{Since: since.UTC(), Until: until.UTC(), Applications: []figures{}}
	var changes []insight.Change
	for i := range all {
		one := &all[i]
		own := insight.Changes(one.releases, func(revision string) time.Time { return one.committed[revision] })
		changes = append(changes, own...)
		out.Applications = append(out.Applications, figures{
			Namespace: one.application.Namespace, Name: one.application.Name,
			Figures: insight.Whole(own, since, until).Figures, KeptSince: one.keptSince(since),
		})
	}
	out.Total = insight.Whole(changes, since, until).Figures
	if by != "" {
		out.Periods = insight.By(changes, by, since.UTC(), until.UTC())
	}
	return out
}

// keptSince returns when the oldest release that is kept has ended, if as many are kept as may be and none is older than since.
func (k *kept) keptSince(since time.Time) *time.Time {
	var oldest *time.Time
	ended := 0
	for _, release := range k.releases {
		if end := release.Status.EndTime; release.Status.Phase.Ended() && end != nil {
			ended++
			if oldest == nil || end.Time.Before(*oldest) {
				oldest = ptr.To(end.UTC())
			}
		}
	}
	if limit := k.application.Spec.ReleaseHistoryLimit; limit == nil || ended == 0 || ended < int(*limit) || oldest.Before(since) {
		return nil
	}
	return oldest
}

// columns are those of figures.
var columns = []string{"DEPLOYMENTS", "PER DAY", "FAILED", "LEAD TIME", "TIME TO RESTORE"}

func cells(f *insight.Figures) []string {
	failed := strconv.Itoa(f.Failures)
	if f.FailureRate != nil {
		failed += fmt.Sprintf(" (%.0f%%)", 100**f.FailureRate)
	}
	restore := seconds(f.TimeToRestoreSeconds)
	if f.Unrestored > 0 {
		restore += fmt.Sprintf(", %d last", f.Unrestored)
	}
	return []string{strconv.Itoa(f.Deployments), strconv.FormatFloat(f.PerDay, 'f', 2, 64), failed, seconds(f.LeadTimeSeconds), restore}
}

func seconds(f *float64) string {
	if f == nil {
		return nothing
	}
	return duration.HumanDuration(time.Duration(*f * float64(time.Second)))
}

// print writes the report for people.
func (r *report) print(out io.Writer) error {
	if len(r.Applications) == 0 {
		_, err := fmt.Fprintln(out, "No applications found.")
		return err
	}
	tab := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(first string, rest []string) { fmt.Fprintln(tab, first+"\t"+strings.Join(rest, "\t")) }
	row("APPLICATION", columns)
	for i := range r.Applications {
		a := &r.Applications[i]
		row(a.Namespace+"/"+a.Name, cells(&a.Figures))
	}
	if len(r.Applications) > 1 {
		row("all", cells(&r.Total))
	}
	if len(r.Periods) > 0 {
		fmt.Fprintln(tab)
		row("BEGINS", columns)
		for i := range r.Periods {
			row(r.Periods[i].Begin.Format("2006-01-02"), cells(&r.Periods[i].Figures))
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for i := range r.Applications {
		if a := &r.Applications[i]; a.KeptSince != nil {
			fmt.Fprintf(out, "\n%s/%s: releases that ended before %s are not kept, as its spec.releaseHistoryLimit says; they are not counted.\n",
				a.Namespace, a.Name, a.KeptSince.Format(time.RFC3339))
		}
	}
	return nil
}
