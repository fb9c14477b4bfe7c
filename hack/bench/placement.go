package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// What a decision over 1,000 clusters may take, in microseconds, and how many allocations for each cluster.
const (
	placeGoal     = 1000
	admissionGoal = 2000
	allocsGoal    = 20
	// decisions is how many of each kind are measured.
	decisions = 1000
)

// placementReport is everything measured with -placement.
type placementReport struct {
	Time  time.Time      `json:"time"`
	Lines []decisionLine `json:"lines"`
}

// decisionLine is one kind of decision. Times are in microseconds.
type decisionLine struct {
	Decision string  `json:"decision"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	// Allocs is allocations for each cluster.
	Allocs float64 `json:"allocsPerCluster"`
	// Goal is what P99 may be at most.
	Goal float64 `json:"goal"`
}

func (l decisionLine) met() string {
	if l.P99 <= l.Goal && l.Allocs <= allocsGoal {
		return "yes"
	}
	return "no"
}

// runPlacement measures decisions over 1,000 clusters by the benchmarks that stand beside them: in memory, without any cluster.
func runPlacement(ctx context.Context, o options, root string) error {
	report := placementReport{Time: time.Now().UTC().Truncate(time.Second)}
	for _, b := range []struct {
		name, folder string
		goal         float64
	}{{"BenchmarkPlace", "./pkg/placement/decide", placeGoal}, {"BenchmarkAdmission", "./pkg/server/storage/workloads", admissionGoal}} {
		fmt.Fprintf(os.Stderr, "bench: %s in %s\n", b.name, b.folder)
		cmd := exec.CommandContext(ctx, "go", "test", b.folder, "-run", "^$", "-bench", "^"+b.name+"$", "-benchtime", fmt.Sprintf("%dx", decisions))
		cmd.Dir, cmd.Stderr = root, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("run %s of %s: %w\n%s", b.name, b.folder, err, out)
		}
		lines, err := parseDecisions(out, b.goal)
		if err != nil {
			return fmt.Errorf("read the figures of %s: %w", b.name, err)
		}
		report.Lines = append(report.Lines, lines...)
	}
	report.print(os.Stdout)
	return o.write(report)
}

// parseDecisions reads what "go test -bench" prints: a name, a count, and then values each followed by their unit.
func parseDecisions(out []byte, goal float64) (lines []decisionLine, err error) {
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "/")
		if i := strings.LastIndex(name, "-"); i > 0 { // the number of processors
			name = name[:i]
		}
		line := decisionLine{Decision: strings.ReplaceAll(name, "_", " "), Goal: goal}
		if goal == admissionGoal {
			line.Decision = "create a Deployment, " + line.Decision
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", scan.Text(), err)
			}
			switch fields[i+1] {
			case "p50-µs":
				line.P50 = value
			case "p99-µs":
				line.P99 = value
			case "allocs/cluster":
				line.Allocs = value
			}
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("there are none in %q", out)
	}
	return lines, nil
}

func (r *placementReport) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "decision over 1,000 clusters\tp50\tp99\tgoal\tallocations per cluster\tgoal\tmet\t\n")
	for _, l := range r.Lines {
		fmt.Fprintf(table, "%s\t%.0f µs\t%.0f µs\t%.0f µs\t%.2f\t%d\t%s\t\n", l.Decision, l.P50, l.P99, l.Goal, l.Allocs, allocsGoal, l.met())
	}
	table.Flush()
}
