package traffic

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/hack/stock/datapath/load"
)

func TestAScenarioThatThereIsNotIsRefused(t *testing.T) {
	_, err := Run(t.Context(), Options{Only: []string{"move", "earthquake"}, Progress: io.Discard})
	if err == nil || !strings.Contains(err.Error(), `"earthquake"`) || !strings.Contains(err.Error(), "drain") {
		t.Errorf("Run(): %v, want an error that names it, and those that there are", err)
	}
}

func TestTheTableTellsWhatWasLostAndWhy(t *testing.T) {
	var out bytes.Buffer
	(&Report{Rows: []Row{
		{Scenario: "loss", Client: "in east", Last: 11.5, Counted: load.Report{
			Sent: 1000, Failed: 3, Slow: 2, Misrouted: 1, Median: 1500 * time.Microsecond, Clusters: map[string]int{"east": 900, "west": 97},
			Reasons: map[string]int{"timeout": 3}, Wrong: map[string]int{"the wrong one": 1},
		}},
		{Scenario: "move", Client: "in west", Error: "no answer before it began"},
	}}).Print(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"loss in east 1000 3 2 1 1.5 ms 0.0 ms 11.5 s east 900, west 97", "loss, in east: timeout 3", "loss, in east: the wrong one 1",
		"move: in west: no answer before it began", "share no network",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
}

func TestAScenarioAboutGatewaysNeedsThem(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"split"}, Progress: io.Discard}); err == nil || !strings.Contains(err.Error(), "-gateway") {
		t.Errorf("Run(): %v, want an error that says what to add", err)
	}
	with, err := choose(Options{Gateway: "traefik"})
	if err != nil || len(with) != len(Names()) {
		t.Errorf("with gateways %d scenarios are chosen of %d (%v)", len(with), len(Names()), err)
	}
	without, err := choose(Options{})
	if err != nil || len(without) != len(Names())-1 {
		t.Errorf("without gateways %d scenarios are chosen of %d (%v)", len(without), len(Names()), err)
	}
}

func TestWhatMissesItsGoalIsNamed(t *testing.T) {
	all := load.Report{Sent: 1000}
	lost := load.Report{Sent: 1000, Failed: 3}
	for name, test := range map[string]struct {
		row  Row
		want string // "" if all is well
	}{
		"nothing is lost":                       {Row{Scenario: "move", Client: "in east", Counted: all}, ""},
		"a request is lost":                     {Row{Scenario: "move", Client: "in east", Counted: lost}, "move, in east: 3 requests failed"},
		"one goes astray":                       {Row{Scenario: "move", Client: "in east", Counted: load.Report{Sent: 1, Misrouted: 1}}, "move, in east: 1 requests went astray"},
		"some are lost while they may be":       {Row{Scenario: "loss", Client: "outside", Counted: lost, Last: 8, Bound: 10}, ""},
		"some are lost after that":              {Row{Scenario: "loss", Client: "outside", Counted: lost, Last: 11, Bound: 10}, "loss, outside: requests failed for 11.0 s, and were to for 10.0 s at most"},
		"a scenario comes to no end":            {Row{Scenario: "drain", Error: "timeout"}, "drain: it came to no end"},
		"a client has no answer at all":         {Row{Scenario: "drain", Client: "in east", Error: "refused"}, "drain, in east: it came to no end"},
		"a share is near enough":                {Row{Scenario: "split", Client: "at east", Counted: all, Shares: []Share{{10, 11.9, 1000}}}, ""},
		"a share is too far off":                {Row{Scenario: "split", Client: "at east", Counted: all, Shares: []Share{{10, 7.9, 1000}}}, "split, at east: the canary got 7.90 % of the requests, and was to get 10 %"},
		"a pod is reached in time":              {Row{Scenario: "reach", Client: "in west", Delays: []time.Duration{time.Second, 0}}, ""},
		"a pod is reached late for one time":    {Row{Scenario: "reach", Client: "in west", Delays: []time.Duration{0, 1200 * time.Millisecond}}, "reach, in west: a pod was reached after 1200.0 ms, and was to be within 1s"},
		"one has failed before the event alone": {Row{Scenario: "loss", Client: "in east", Counted: lost}, "loss, in east: 3 requests failed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := (&Report{Rows: []Row{test.row}}).Missed(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("missed is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheTableTellsOfSharesAndDelays(t *testing.T) {
	var out bytes.Buffer
	(&Report{Shared: true, Rows: []Row{
		{Scenario: "split", Client: "at east", Counted: load.Report{Sent: 1}, Shares: []Share{{1, 1.01, 10_000}, {50, 50, 10_000}}},
		{Scenario: "reach", Client: "in west", Delays: []time.Duration{300 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}},
	}}).Print(&out)
	for _, want := range []string{
		"split, at east: 1.01 % of 10000 requests where 1 % are wanted; 50.00 % of 10000 requests where 50 % are wanted",
		"reach, in west: answered 200.0 ms after a pod was ready in the other cluster in the median of 3 times, 300.0 ms at most",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
}
