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
