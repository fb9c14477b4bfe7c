package waves

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func at(n int32) delivery.Wave { return delivery.Wave{MaxConcurrency: ptr.To(intstr.FromInt32(n))} }

func part(of string) delivery.Wave {
	return delivery.Wave{MaxConcurrency: ptr.To(intstr.FromString(of))}
}

func of(wave delivery.Wave, targets ...string) delivery.Wave {
	wave.Targets = targets
	return wave
}

func TestAssign(t *testing.T) {
	for name, test := range map[string]struct {
		places string // one letter each: the target's name
		waves  []delivery.Wave
		want   []int
		err    string
	}{
		"without waves all are one":                          {places: "abc", want: []int{0, 0, 0}},
		"one wave has all":                                   {places: "abc", waves: []delivery.Wave{at(1)}, want: []int{0, 0, 0}},
		"a wave has as many as may be under way at once":     {places: "abcd", waves: []delivery.Wave{at(1), part("50%")}, want: []int{0, 1, 1, 1}},
		"a percentage is of all of them, and rounded up":     {places: "abcde", waves: []delivery.Wave{part("30%"), {}}, want: []int{0, 0, 1, 1, 1}},
		"a wave can name its targets":                        {places: "abcd", waves: []delivery.Wave{of(at(1), "c", "d"), {}}, want: []int{1, 1, 0, 0}},
		"a target of several clusters is in one wave":        {places: "aabb", waves: []delivery.Wave{of(delivery.Wave{}, "b"), {}}, want: []int{1, 1, 0, 0}},
		"what no wave names comes last":                      {places: "abc", waves: []delivery.Wave{of(at(1), "a"), of(at(1), "b")}, want: []int{0, 1, 2}},
		"the first wave that names a target has it":          {places: "ab", waves: []delivery.Wave{of(delivery.Wave{}, "a"), of(delivery.Wave{}, "a", "b")}, want: []int{0, 1}},
		"waves beyond the last target are empty":             {places: "a", waves: []delivery.Wave{at(1), at(1), at(1)}, want: []int{0}},
		"a wave that lets nobody begin is refused":           {places: "ab", waves: []delivery.Wave{at(0)}, err: "waves[0].maxConcurrency"},
		"a wave that is neither number nor part is refused":  {places: "ab", waves: []delivery.Wave{{}, part("many")}, err: "waves[1].maxConcurrency"},
		"a negative percentage is refused like a negative n": {places: "ab", waves: []delivery.Wave{part("-5%")}, err: "waves[0].maxConcurrency"},
	} {
		t.Run(name, func(t *testing.T) {
			var places []delivery.Place
			for i, target := range test.places {
				places = append(places, delivery.Place{Target: string(target), Cluster: string('A' + rune(i))})
			}
			got, err := Assign(places, test.waves)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("waves %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

// targets reads phases and waves: "S0 R0 .1" is one that has succeeded and one that runs, both of wave 0, and one of wave 1 that has not begun. The
// clusters are called a, b, c and so on. L is for one that is to be left.
func targets(text string) []delivery.TargetStatus {
	phases := map[byte]delivery.Phase{'S': delivery.Succeeded, 'R': delivery.Running, '.': delivery.NotStarted, 'F': delivery.Failed, 'K': delivery.Skipped}
	var out []delivery.TargetStatus
	for i, field := range strings.Fields(text) {
		name := string('a' + rune(i))
		t := delivery.TargetStatus{Place: delivery.Place{Target: name, Cluster: name}, Phase: phases[field[0]], Wave: int(field[1] - '0')}
		if t.Phase == delivery.Failed {
			t.Message = "it is broken"
		}
		if field[0] == 'L' {
			t.Phase, t.Retired = delivery.NotStarted, true
		}
		out = append(out, t)
	}
	return out
}

func TestBegin(t *testing.T) {
	for name, test := range map[string]struct {
		targets string
		waves   []delivery.Wave
		failure int32
		silent  string
		late    string
		want    string // the clusters that begin
	}{
		"all at once without waves":                      {targets: ".0 .0 .0", want: "abc"},
		"as many as may be under way":                    {targets: ".0 .0 .0", waves: []delivery.Wave{at(2)}, want: "ab"},
		"the next one when one is done":                  {targets: "S0 R0 .0", waves: []delivery.Wave{at(2)}, want: "c"},
		"nobody while as many as may be are under way":   {targets: "R0 R0 .0", waves: []delivery.Wave{at(2)}},
		"a percentage is of all targets of the stage":    {targets: "S0 .1 .1 .1", waves: []delivery.Wave{at(1), part("50%")}, want: "bc"},
		"nobody of a wave while one before is under way": {targets: "S0 R0 .1 .1", waves: []delivery.Wave{at(2), at(2)}},
		"nor while one before has not begun":             {targets: "S0 .0 .1", waves: []delivery.Wave{at(2), at(2)}, want: "b"},
		"the next wave when all before are done":         {targets: "S0 K0 .1 .2", waves: []delivery.Wave{at(2), at(2), at(2)}, want: "c"},
		"nobody once one has failed":                     {targets: "F0 R0 .0 .1", waves: []delivery.Wave{at(2), at(2)}},
		"the next if that many may fail":                 {targets: "F0 S0 .1", waves: []delivery.Wave{at(2), at(2)}, failure: 1, want: "c"},
		"nobody once more have failed than may":          {targets: "F0 F0 .1", waves: []delivery.Wave{at(2), at(2)}, failure: 1},
		"a silent one takes nobody's turn":               {targets: "R0 .0 .0", waves: []delivery.Wave{at(1)}, silent: "a", want: "b"},
		"nor its own":                                    {targets: ".0 .0 .0", waves: []delivery.Wave{at(1)}, silent: "a", want: "b"},
		"the next wave waits for it":                     {targets: "R0 S0 .1", waves: []delivery.Wave{at(2), at(2)}, silent: "a"},
		"until it is late":                               {targets: "R0 S0 .1", waves: []delivery.Wave{at(2), at(2)}, silent: "a", late: "a", want: "c"},
		"also one that has not begun":                    {targets: ".0 S0 .1 .2", waves: []delivery.Wave{at(2), at(1), at(1)}, silent: "a", late: "a", want: "c"},
		"but waits for who answers":                      {targets: "R0 R0 .1", waves: []delivery.Wave{at(2), at(2)}, silent: "a", late: "a"},
		"a late one that is back begins":                 {targets: ".0 S0 R1 .1", waves: []delivery.Wave{at(2), at(2)}, want: "a"},
		"clusters leave after all, and the late":         {targets: "R0 S0 L1", waves: []delivery.Wave{at(2)}, silent: "a", late: "a"},
		"what follows the last wave goes by that":        {targets: "S0 .1 .1", waves: []delivery.Wave{of(at(1), "a")}, want: "b"},
		"nobody where all have ended":                    {targets: "S0 K0 S1"},
	} {
		t.Run(name, func(t *testing.T) {
			named := func(clusters string) map[string]bool {
				out := map[string]bool{}
				for _, cluster := range clusters {
					out[string(cluster)] = true
				}
				return out
			}
			stage := delivery.Stage{Waves: test.waves, Failure: delivery.Failure{MaxFailures: test.failure}}
			got := ""
			for _, i := range Begin(stage, targets(test.targets), named(test.silent), named(test.late)) {
				got += string('a' + rune(i))
			}
			if got != test.want {
				t.Errorf("%q begin, want %q", got, test.want)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		targets string
		failure int32
		phase   delivery.Phase
		message string
	}{
		"it runs while any target does":                      {targets: "S0 R0 .0", phase: delivery.Running, message: "1 of 3 targets are done"},
		"it runs while any target is to begin":               {targets: "S0 .1", phase: delivery.Running, message: "1 of 2 targets are done"},
		"it has succeeded when all have":                     {targets: "S0 S0", phase: delivery.Succeeded, message: "2 of 2 targets are done"},
		"what is skipped keeps nobody":                       {targets: "S0 K0", phase: delivery.Succeeded, message: "1 of 2 targets are done, 1 skipped"},
		"rule 3: a failure cuts nobody off who is under way": {targets: "F0 R0 .1", phase: delivery.Running, message: "0 of 3 targets are done, 1 failed"},
		"it has failed when none is under way any more":      {targets: "F0 S0 .1", phase: delivery.Failed, message: "cluster \"a\": it is broken"},
		"it names one failure and counts the others":         {targets: "F0 F0 F0", phase: delivery.Failed, message: "cluster \"a\": it is broken (and 2 more)"},
		"it bears as many failures as may be":                {targets: "F0 S0", failure: 1, phase: delivery.Succeeded, message: "1 of 2 targets are done, 1 failed, which may be: cluster \"a\": it is broken"},
		"but no more":                                        {targets: "F0 F0 S0", failure: 1, phase: delivery.Failed, message: "cluster \"a\": it is broken (and 1 more)"},
		"a stage of no targets has nothing to do":            {phase: delivery.Succeeded, message: "0 of 0 targets are done"},
	} {
		t.Run(name, func(t *testing.T) {
			phase, message := Outcome(delivery.Stage{Failure: delivery.Failure{MaxFailures: test.failure}}, targets(test.targets))
			if phase != test.phase || message != test.message {
				t.Errorf("%s: %s, want %s: %s", phase, message, test.phase, test.message)
			}
		})
	}
}
