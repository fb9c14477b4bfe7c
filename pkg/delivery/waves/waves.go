// Package waves says which targets of a stage may begin, which of them are done, and what failed and silent ones mean for the stage.
package waves

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Assign returns the wave of each of the places, in their order, counted from 0.
func Assign(places []delivery.Place, waves []delivery.Wave) ([]int, error) {
	out := make([]int, len(places))
	named := make([]bool, len(places))
	for i, wave := range waves {
		for j, place := range places {
			if !named[j] && slices.Contains(wave.Targets, place.Target) {
				out[j], named[j] = i, true
			}
		}
	}
	for i, wave := range waves {
		if len(wave.Targets) > 0 {
			continue
		}
		size, err := concurrency(wave, len(places))
		if err != nil {
			return nil, fmt.Errorf("waves[%d].maxConcurrency: %w", i, err)
		}
		if i == len(waves)-1 {
			size = len(places)
		}
		for j := range places {
			if !named[j] && size > 0 {
				out[j], named[j] = i, true
				size--
			}
		}
	}
	// What no wave has taken follows the last one.
	for j := range places {
		if !named[j] {
			out[j] = max(0, len(waves))
		}
	}
	return out, nil
}

// concurrency returns how many targets of a wave may be under way at once.
func concurrency(wave delivery.Wave, places int) (int, error) {
	if wave.MaxConcurrency == nil {
		return places, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(wave.MaxConcurrency, places, true)
	if err != nil {
		return 0, err
	}
	if n <= 0 {
		return 0, fmt.Errorf("%q lets no target begin", wave.MaxConcurrency.String())
	}
	return n, nil
}

// limit returns how many targets of a wave may be under way at once; those beyond the last wave go by it.
func limit(waves []delivery.Wave, wave, places int) int {
	if len(waves) == 0 {
		return places
	}
	n, err := concurrency(waves[min(wave, len(waves)-1)], places)
	if err != nil {
		return 1 // Assign has refused it
	}
	return n
}

// Begin returns which targets may begin now, by their index: those of the current wave, as many as may be under way at once. A target
// that is silent takes nobody's turn, neither by being under way nor by waiting for its own; of those that are late see Current. Nothing begins any more once
// too many have failed.
func Begin(stage delivery.Stage, targets []delivery.TargetStatus, silent, late map[string]bool) []int {
	if Exceeded(stage, targets) {
		return nil
	}
	wave, running, places := Current(targets, late), 0, 0
	for _, t := range targets {
		if t.Phase == delivery.Running && !silent[t.Cluster] {
			running++
		}
		if !t.Retired { // percentages are of those that the waves were made of
			places++
		}
	}
	var out []int
	for i, t := range targets {
		if t.Wave == wave && t.Phase == delivery.NotStarted && !silent[t.Cluster] && running < limit(stage.Waves, wave, max(1, places)) {
			out = append(out, i)
			running++
		}
	}
	return out
}

// Current is the first wave that is not done, -1 if all are. A target that is late, since its cluster has been silent for long, is waited for by the stage, and
// not by the targets of later waves: one dead cluster does not hold up all others. Clusters that the application is to leave wait for all.
func Current(targets []delivery.TargetStatus, late map[string]bool) int {
	wave, answering := -1, -1
	for _, t := range targets {
		if t.Phase.Ended() {
			continue
		}
		if wave < 0 || t.Wave < wave {
			wave = t.Wave
		}
		if !late[t.Cluster] && !t.Retired && (answering < 0 || t.Wave < answering) {
			answering = t.Wave
		}
	}
	if answering >= 0 {
		return answering
	}
	return wave
}

// Exceeded reports whether more targets have failed than may.
func Exceeded(stage delivery.Stage, targets []delivery.TargetStatus) bool {
	return count(targets, delivery.Failed) > int(max(0, stage.Failure.MaxFailures))
}

func count(targets []delivery.TargetStatus, phase delivery.Phase) (n int) {
	for _, t := range targets {
		if t.Phase == phase {
			n++
		}
	}
	return n
}

// Outcome returns the phase of a stage and why it is in it. A stage ends when none of its targets is under way any more: one that has failed does
// not cut the others off.
func Outcome(stage delivery.Stage, targets []delivery.TargetStatus) (delivery.Phase, string) {
	failed, running, waiting := count(targets, delivery.Failed), count(targets, delivery.Running), count(targets, delivery.NotStarted)
	switch {
	case running > 0:
		return delivery.Running, progress(targets)
	case Exceeded(stage, targets):
		return delivery.Failed, failures(targets)
	case waiting > 0:
		return delivery.Running, progress(targets)
	case failed > 0:
		return delivery.Succeeded, fmt.Sprintf("%s, which may be: %s", progress(targets), failures(targets))
	}
	return delivery.Succeeded, progress(targets)
}

func progress(targets []delivery.TargetStatus) string {
	out := fmt.Sprintf("%d of %d targets are done", count(targets, delivery.Succeeded), len(targets))
	for _, of := range []struct {
		phase delivery.Phase
		word  string
	}{{delivery.Failed, "failed"}, {delivery.Skipped, "skipped"}} {
		if n := count(targets, of.phase); n > 0 {
			out += fmt.Sprintf(", %d %s", n, of.word)
		}
	}
	silent := slices.DeleteFunc(slices.Clone(targets), func(t delivery.TargetStatus) bool { return !t.Silent || t.Phase.Ended() })
	if len(silent) > 0 {
		out += fmt.Sprintf(", waiting for %d that do not answer, such as cluster %q", len(silent), silent[0].Cluster)
	}
	return out
}

// failures names the first target that has failed, and says how many others have.
func failures(targets []delivery.TargetStatus) string {
	first := slices.IndexFunc(targets, func(t delivery.TargetStatus) bool { return t.Phase == delivery.Failed })
	if first < 0 {
		return ""
	}
	out := targets[first].Message
	if name := fmt.Sprintf("cluster %q", targets[first].Cluster); !strings.Contains(out, name) {
		out = name + ": " + out
	}
	if n := count(targets, delivery.Failed); n > 1 {
		out += fmt.Sprintf(" (and %d more)", n-1)
	}
	return out
}
