package pipeline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	// longest bounds what a message takes of the screen, and longestCell what it takes of a column that others follow.
	longest     = 512
	longestCell = 72
	// longestVersion is how much of a version tells it from others.
	longestVersion = 40
	// nothing stands in a column that has no value.
	nothing = output.Nothing
)

// short is a version in a column.
func short(version string) string { return text.Line(version, longestVersion) }

// cell is what stands in a column that others follow.
func cell(said string) string { return cmp.Or(text.Line(said, longestCell), nothing) }

func printLines(out io.Writer, lines []string) error {
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// show returns what there is to see of a pipeline, line by line: a column for each environment, what is wrong, and what can be done about it.
func show(p *weave.Pipeline, wide bool, now time.Time) []string {
	lines := append(header(p, now), "")
	lines = append(lines, output.Table(columns(p, now))...)
	if wide {
		lines = append(append(lines, ""), output.Table(targets(p))...)
	}
	if wrong := problems(p); len(wrong) > 0 {
		lines = append(append(lines, ""), wrong...)
	}
	if advice := advise(p); len(advice) > 0 {
		lines = append(append(lines, ""), advice...)
	}
	return lines
}

func header(p *weave.Pipeline, now time.Time) []string {
	rows := [][]string{{"Pipeline:", p.Namespace + "/" + p.Name + " (" + p.GroupVersionKind().Group + ")"}}
	app := "what carries the label " + weave.PipelineLabel + "=" + p.Name
	if ref := p.Spec.AppRef; ref != nil {
		app = text.Line(ref.Kind+"/"+ref.Name, longest)
	}
	rows = append(rows, []string{"App:", app})
	for _, c := range p.Status.Conditions {
		if c.Type == weave.ConditionPromoting && c.Message != "" {
			rows = append(rows, []string{"Promoting:", text.Line(c.Message, longest)})
		}
	}
	if pause := p.Status.Paused; pause != nil {
		rows = append(rows, []string{"Paused:", text.Line(asked(pause.By, pause.Message, now.Sub(pause.At.Time)), longest)})
	}
	return output.Table(rows)
}

// asked says who has asked for something, when, and what they said.
func asked(by, message string, ago time.Duration) string {
	out := fmt.Sprintf("by %s, %s ago", by, duration.HumanDuration(ago))
	if message != "" {
		out += fmt.Sprintf(": %s", message)
	}
	return out
}

// columns are the rows of the table with a column for each environment.
func columns(p *weave.Pipeline, now time.Time) [][]string {
	head, ready, promotion, waiting, person := []string{"WORKLOAD"}, []string{"ready"}, []string{"promotion"}, []string{"waits"}, []string{"asked"}
	var out [][]string
	named := workloadNames(p)
	for range named {
		out = append(out, nil)
	}
	for i, name := range named {
		out[i] = []string{text.Line(name, longestCell)}
	}
	someone := false
	for i := range p.Spec.Environments {
		of := p.Status.Environments[p.Spec.Environments[i].Name]
		if of == nil {
			of = &weave.EnvironmentStatus{}
		}
		head = append(head, text.Line(p.Spec.Environments[i].Name, longestCell))
		for j, name := range named {
			out[j] = append(out[j], cell(runs(of, name)))
		}
		ready = append(ready, readyOf(of, len(p.Spec.Environments[i].Targets)))
		promotion = append(promotion, cell(promoted(of.Promotion)))
		waiting = append(waiting, cell(waitingFor(of)))
		said := ""
		if of.Asked != nil {
			someone = true
			said = short(of.Asked.Revision) + " " + asked(of.Asked.By, of.Asked.Message, now.Sub(of.Asked.At.Time))
		}
		person = append(person, cell(said))
	}
	out = append([][]string{head}, out...)
	out = append(out, ready, promotion, waiting)
	if someone {
		out = append(out, person)
	}
	return out
}

// workloadNames are those of all environments, as KIND/NAME.
func workloadNames(p *weave.Pipeline) []string {
	var out []string
	for i := range p.Spec.Environments {
		for _, w := range workloadsOf(p.Status.Environments[p.Spec.Environments[i].Name]) {
			out = append(out, w.Kind+"/"+w.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// workloadsOf are those of all targets of an environment.
func workloadsOf(of *weave.EnvironmentStatus) []*weave.WorkloadStatus {
	var out []*weave.WorkloadStatus
	if of == nil {
		return nil
	}
	for i := range of.Targets {
		for j := range of.Targets[i].Workloads {
			out = append(out, &of.Targets[i].Workloads[j])
		}
	}
	return out
}

// runs says which versions of a workload an environment runs, in how many of its targets if they differ, and whether it is well.
func runs(of *weave.EnvironmentStatus, name string) string {
	var order []string
	in, state := map[string]int{}, ""
	for _, w := range workloadsOf(of) {
		if w.Kind+"/"+w.Name != name {
			continue
		}
		version := cmp.Or(short(w.Version), "?")
		if in[version]++; in[version] == 1 {
			order = append(order, version)
		}
		switch {
		case w.Failed:
			state = " (failed)"
		case !w.Ready && state == "":
			state = " (not ready)"
		}
	}
	if len(order) == 1 && in[order[0]] == len(of.Targets) {
		return order[0] + state
	}
	for i, version := range order {
		order[i] = fmt.Sprintf("%s %d/%d", version, in[version], len(of.Targets))
	}
	if len(order) == 0 {
		return ""
	}
	return strings.Join(order, ", ") + state
}

// readyOf is how many targets are ready, of how many.
func readyOf(of *weave.EnvironmentStatus, wanted int) string {
	ready := 0
	for i := range of.Targets {
		if of.Targets[i].Ready && of.Targets[i].Error == "" {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, wanted)
}

func promoted(last *weave.PromotionStatus) string {
	if last == nil {
		return ""
	}
	out := string(last.Phase) + " " + short(last.Revision)
	if last.Held {
		out += ", held"
	}
	return out
}

func waitingFor(of *weave.EnvironmentStatus) string {
	if of.WaitingStatus == nil {
		return ""
	}
	return short(of.WaitingStatus.Revision)
}

// place names a target.
func place(t *weave.TargetStatus) string {
	if t.Name == "" {
		return t.Namespace
	}
	return t.Name + "/" + t.Namespace
}

// targets are the rows that tell of each target by itself.
func targets(p *weave.Pipeline) [][]string {
	out := [][]string{{"ENVIRONMENT", "TARGET", "WORKLOAD", "VERSION", "APPLIED", "READY", "IMAGES", "MESSAGE"}}
	for i := range p.Spec.Environments {
		name := p.Spec.Environments[i].Name
		of := p.Status.Environments[name]
		if of == nil {
			continue
		}
		for j := range of.Targets {
			t := &of.Targets[j]
			if len(t.Workloads) == 0 {
				out = append(out, []string{cell(name), cell(place(t)), nothing, nothing, nothing, nothing, nothing, text.Line(cmp.Or(t.Error, "runs nothing of the app"), longest)})
			}
			for k := range t.Workloads {
				w := &t.Workloads[k]
				out = append(out, []string{
					cell(name), cell(place(t)), cell(w.Kind + "/" + w.Name), cmp.Or(text.Line(w.Version, longest), nothing), cmp.Or(text.Line(w.LastAppliedRevision, longest), nothing),
					fmt.Sprint(w.Ready), cmp.Or(text.Line(strings.Join(w.Images, ","), longest), nothing), text.Line(w.Message, longest),
				})
			}
			if t.MoreWorkloads > 0 {
				out = append(out, []string{cell(name), cell(place(t)), fmt.Sprintf("... and %d more", t.MoreWorkloads), "", "", "", "", ""})
			}
		}
	}
	return out
}

// problems say what is wrong, each in a line.
func problems(p *weave.Pipeline) []string {
	var out []string
	tell := func(where, what string) {
		if what != "" {
			out = append(out, text.Line("! "+where+": "+what, longest))
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == weave.ConditionReady && c.Status == "False" && len(p.Status.Environments) == 0 {
			tell("pipeline", c.Message)
		}
	}
	for i := range p.Spec.Environments {
		name := p.Spec.Environments[i].Name
		of := p.Status.Environments[name]
		if of == nil {
			continue
		}
		for j := range of.Targets {
			t := &of.Targets[j]
			tell(name+", "+place(t), t.Error)
			for k := range t.Workloads {
				if w := &t.Workloads[k]; !w.Ready {
					tell(name+", "+place(t)+", "+w.Kind+"/"+w.Name, w.Message)
				}
			}
		}
		tell(name+", promotion", of.Denied)
		tell(name+", calls of its webhooks", of.WebhookDenied)
		if last := of.Promotion; last != nil && (last.Phase == weave.PromotionFailed || last.Phase == weave.PromotionRevoked) {
			tell(name+", promotion of "+short(last.Revision), cmp.Or(last.Message, "it is "+string(last.Phase)))
		}
	}
	return out
}

// advise says what a person can do.
func advise(p *weave.Pipeline) []string {
	var out []string
	of := p.Name + " -n " + p.Namespace
	if p.Status.Paused != nil {
		out = append(out, "To go on: manifold pipeline resume "+of)
	}
	for i := range p.Spec.Environments {
		name := p.Spec.Environments[i].Name
		at := p.Status.Environments[name]
		if at == nil {
			continue
		}
		if at.Promotion != nil && at.Promotion.URL != "" && at.Promotion.Phase == weave.PromotionStarted {
			out = append(out, text.Line(fmt.Sprintf("To bring %s to %s, merge %s", short(at.Promotion.Revision), name, at.Promotion.URL), longest))
		}
		if at.WaitingStatus != nil && p.Status.Paused == nil {
			out = append(out, text.Line(fmt.Sprintf("To promote %s: manifold pipeline promote %s --to %s", short(at.WaitingStatus.Revision), of, name), longest))
		}
	}
	return out
}
