package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// report is everything measured in a run. Times are in seconds.
type report struct {
	Time    time.Time           `json:"time"`
	Count   int                 `json:"count"`
	Seconds int                 `json:"seconds"`
	Workers int                 `json:"workers"`
	Hub     hubFigures          `json:"hub"`
	Bursts  map[string][]burst  `json:"bursts"`
	Steady  map[string][]steady `json:"steady"`
	Figures []figure            `json:"figures"`
}

// hubFigures are those of the logical cluster's process at rest.
type hubFigures struct {
	// StartFresh and StartAgain are seconds until ready, on empty data and with two clusters joined.
	StartFresh float64 `json:"startFresh"`
	StartAgain float64 `json:"startAgain"`
	// IdleMemory is resident memory in MiB with two clusters joined.
	IdleMemory float64 `json:"idleMemoryMiB"`
}

// burst is a round of creating many Deployments at once.
type burst struct {
	Present float64 `json:"present"`
	Ready   float64 `json:"ready"`
	Cost    cost    `json:"cost"`
	// Others is the part of the machine that went to other processes meanwhile.
	Others float64 `json:"others"`
}

// cost is what one Deployment took on average. CPU is in milliseconds.
type cost struct {
	ClusterCPU float64 `json:"clusterCPU"`
	HubCPU     float64 `json:"hubCPU,omitempty"`
	// Writes, by verb and resource, are the calls of the logical cluster's API, the user's own create included; Refused are the failed
	// ones among them; StorageWrites are the changes of its storage.
	Writes        map[string]float64 `json:"writes,omitempty"`
	Refused       float64            `json:"refused,omitempty"`
	StorageWrites map[string]float64 `json:"storageWrites,omitempty"`
}

// steady is a round of creating one Deployment a second; its figures are medians.
type steady struct {
	Present float64 `json:"present"`
	Ready   float64 `json:"ready"`
}

func (s snapshot) since(before snapshot, n int) cost {
	return cost{
		ClusterCPU:    seconds(s.clusterCPU-before.clusterCPU) * 1000 / float64(n),
		HubCPU:        seconds(s.hubCPU-before.hubCPU) * 1000 / float64(n),
		Writes:        since(s.requests.api, before.requests.api, n),
		Refused:       (s.requests.refused - before.requests.refused) / float64(n),
		StorageWrites: since(s.requests.storage, before.requests.storage, n),
	}
}

func newReport(o options) *report {
	return &report{
		Time: time.Now().UTC().Truncate(time.Second), Count: o.count, Seconds: o.seconds, Workers: o.workers,
		Bursts: map[string][]burst{}, Steady: map[string][]steady{},
	}
}

func (r *report) addBurst(way string, b burst)   { r.Bursts[way] = append(r.Bursts[way], b) }
func (r *report) addSteady(way string, s steady) { r.Steady[way] = append(r.Steady[way], s) }

// figure is a line of the table.
type figure struct {
	Name    string  `json:"name"`
	Direct  float64 `json:"direct,omitempty"`
	Through float64 `json:"through,omitempty"`
	// Ratio is Through by Direct, where both were measured.
	Ratio float64 `json:"ratio,omitempty"`
	// Goal is what Ratio, or else Through, may be at most; 0 if there is no goal.
	Goal float64 `json:"goal,omitempty"`

	unit string
}

func (r *report) figures() []figure {
	bursts := func(way string, value func(burst) float64) float64 { return medianOf(r.Bursts[way], value) }
	steadies := func(way string, value func(steady) float64) float64 { return medianOf(r.Steady[way], value) }
	compare := func(name string, goal float64, value func(burst) float64) figure {
		return figure{Name: name, Direct: bursts("direct", value), Through: bursts("through", value), Goal: goal, unit: "s"}
	}
	once := func(name string, goal float64, value func(steady) float64) figure {
		return figure{Name: name, Direct: steadies("direct", value) * 1000, Through: steadies("through", value) * 1000, Goal: goal, unit: "ms"}
	}
	hub := func(name string, goal float64, unit string, value func(burst) float64) figure {
		return figure{Name: name, Through: bursts("through", value), Goal: goal, unit: unit}
	}
	list := []figure{
		compare(fmt.Sprintf("%d at once until present on both", r.Count), 1.5, func(b burst) float64 { return b.Present }),
		compare(fmt.Sprintf("%d at once until ready", r.Count), 1.4, func(b burst) float64 { return b.Ready }),
		once("one a second until present on both, median", 1.5, func(s steady) float64 { return s.Present }),
		once("one a second until ready, median", 1.5, func(s steady) float64 { return s.Ready }),
		{Name: "CPU of both clusters per Deployment", unit: "ms",
			Direct:  bursts("direct", func(b burst) float64 { return b.Cost.ClusterCPU }),
			Through: bursts("through", func(b burst) float64 { return b.Cost.ClusterCPU })},
		hub("CPU of the logical cluster per Deployment", 40, "ms", func(b burst) float64 { return b.Cost.HubCPU }),
		hub("API writes per Deployment, the user's create included", 10, "", func(b burst) float64 { return sum(b.Cost.Writes) }),
		hub("API writes per Deployment, the user's create not included", 0, "", func(b burst) float64 { return sum(b.Cost.Writes) - 1 }),
		hub("API writes refused per Deployment", 0, "", func(b burst) float64 { return b.Cost.Refused }),
		hub("storage writes per Deployment", 0, "", func(b burst) float64 { return sum(b.Cost.StorageWrites) }),
		{Name: "start until ready, empty", Through: r.Hub.StartFresh, Goal: 5, unit: "s"},
		{Name: "start until ready, two clusters joined", Through: r.Hub.StartAgain, Goal: 5, unit: "s"},
		{Name: "resident memory at rest, two clusters joined", Through: r.Hub.IdleMemory, Goal: 350, unit: "MiB"},
	}
	for i := range list {
		if f := &list[i]; f.Direct > 0 && f.Through > 0 {
			f.Ratio = f.Through / f.Direct
		}
	}
	return list
}

func medianOf[T any](rounds []T, value func(T) float64) float64 {
	var values []float64
	for _, round := range rounds {
		values = append(values, value(round))
	}
	return median(values)
}

func (r *report) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "figure\tdirect\tthrough\tratio\tgoal\tmet\t\n")
	for _, f := range r.figures() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t\n", f.Name, number(f.Direct, f.unit), number(f.Through, f.unit),
			number(f.Ratio, ""), number(f.Goal, ""), f.met())
	}
	table.Flush()
	if others := r.others(); others > quietOthers {
		fmt.Fprintf(out, "\nOther processes took up to %.0f%% of this machine meanwhile: measure again when it is idle.\n", others*100)
	}
}

// quietOthers is how much of the machine others may take before figures are in doubt.
const quietOthers = 0.05

// others is the largest part of the machine that went to others in any round.
func (r *report) others() (largest float64) {
	for _, rounds := range r.Bursts {
		for _, round := range rounds {
			largest = max(largest, round.Others)
		}
	}
	return largest
}

// number leaves out what was not measured.
func number(value float64, unit string) string {
	switch {
	case value == 0:
		return ""
	case unit == "":
		return fmt.Sprintf("%.2f", value)
	case value >= 100:
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

func (f figure) met() string {
	value := f.Through
	if f.Direct > 0 {
		value = f.Ratio
	}
	switch {
	case f.Goal == 0 || value == 0:
		return ""
	case value <= f.Goal:
		return "yes"
	}
	return "no"
}

// write writes everything measured to the file that the options name, if they name one.
func (o options) write(report any) error {
	if o.output == "" {
		return nil
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(o.output, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
