package explain

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestStateOf(t *testing.T) {
	for name, test := range map[string]struct {
		member moves.Member
		want   string
	}{
		"nothing special":                   {want: "-"},
		"one that does not answer":          {member: moves.Member{Silent: true}, want: "silent"},
		"one that has been given up":        {member: moves.Member{Silent: true, Lost: true}, want: "lost"},
		"one that goes":                     {member: moves.Member{Leaving: true}, want: "being removed"},
		"one that goes and does not answer": {member: moves.Member{Leaving: true, Silent: true}, want: "being removed, silent"},
		"one that nobody waits for":         {member: moves.Member{Leaving: true, Forgotten: true, Silent: true}, want: "removed by force"},
		"one that cannot hold it":           {member: moves.Member{Failed: true}, want: "failed"},
		"one that could not hold it before": {member: moves.Member{Silent: true, Failed: true}, want: "silent, failed"},
	} {
		if got := stateOf(test.member); got != test.want {
			t.Errorf("%s is %q, want %q", name, got, test.want)
		}
	}
}

// A cluster that words a problem draws no rows, writes over none, and fills no screen.
func TestWhatAClusterSaysStaysInItsRow(t *testing.T) {
	for name, member := range map[string]*moves.Member{"in the row of a member": {Failed: true}, "in the row of a cluster": nil} {
		t.Run(name, func(t *testing.T) {
			print := func(said string) string {
				report := &Report{Kind: "Deployment", Replicas: new(int32), Clusters: []Cluster{{
					Name: "east", Member: member, Share: &placement.Share{Replicas: 1}, Status: &summary.ClusterStatus{Problem: said, Waits: said},
				}}}
				var out strings.Builder
				if err := report.text(&out, now); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			harmless, got := print("denied"), print("denied\x1b[2J\r\nwest\t9\t9\t\u202e9 \u2028all is well"+strings.Repeat("!", 2*longestMessage))
			if strings.ContainsAny(got, "\x1b\r\t\u202e\u2028") {
				t.Errorf("it moves the cursor of who reads it:\n%q", got)
			}
			if rows, want := strings.Count(got, "\n"), strings.Count(harmless, "\n"); rows != want {
				t.Errorf("%d rows, want %d:\n%s", rows, want, got)
			}
			if most := len(harmless) + 2*longestMessage; len(got) > most {
				t.Errorf("%d characters, want %d at most", len(got), most)
			}
		})
	}
}
