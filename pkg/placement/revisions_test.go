package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// held makes a decision of triples: cluster, replicas and revision, which may have a target behind a slash.
func held(triples ...any) placement.Decision {
	d := placement.Decision{}
	for i := 0; i < len(triples); i += 3 {
		revision, target, _ := strings.Cut(triples[i+2].(string), "/")
		d[triples[i].(string)] = placement.Share{Replicas: int32(triples[i+1].(int)), Revision: revision, Target: target}
	}
	return d
}

func TestHolding(t *testing.T) {
	for name, test := range map[string]struct{ last, decided, want placement.Decision }{
		"nothing is held": {
			last: held("east", 3, ""), decided: held("east", 2, "", "west", 1, ""), want: held("east", 2, "", "west", 1, ""),
		},
		"who is scaled holds on": {
			last: held("east", 3, "web-v7/eu"), decided: held("east", 5, ""), want: held("east", 5, "web-v7/eu"),
		},
		"each its own": {
			last:    held("east", 3, "web-v8/eu", "west", 3, "web-v7/us"),
			decided: held("east", 1, "", "west", 5, ""), want: held("east", 1, "web-v8/eu", "west", 5, "web-v7/us"),
		},
		"a move takes it along": {
			last: held("east", 3, "web-v8/eu"), decided: held("west", 3, ""), want: held("west", 3, "web-v8/eu"),
		},
		"who comes in place of one that leaves holds what that one held": {
			last:    held("east", 3, "web-v7/eu", "west", 3, "web-v8/us"),
			decided: held("east", 3, "", "north", 3, ""), want: held("east", 3, "web-v7/eu", "north", 3, "web-v8/us"),
		},
		"of several that leave the first revision": {
			last:    held("east", 3, "web-v10/eu", "west", 3, "web-v9/us"),
			decided: held("north", 6, ""), want: held("north", 6, "web-v9/us"),
		},
		"of one that gives up replicas": {
			last:    held("east", 3, "web-v7/eu", "west", 3, "web-v8/us"),
			decided: held("east", 3, "", "west", 1, "", "north", 2, ""), want: held("east", 3, "web-v7/eu", "west", 1, "web-v8/us", "north", 2, "web-v8/us"),
		},
		"else the first revision of all": {
			last:    held("east", 3, "web-v10/eu", "west", 3, "web-v9/us"),
			decided: held("east", 3, "", "west", 3, "", "north", 3, ""), want: held("east", 3, "web-v10/eu", "west", 3, "web-v9/us", "north", 3, "web-v9/us"),
		},
		"of several targets the first": {
			last:    held("east", 3, "web-v9/us", "west", 3, "web-v9/eu"),
			decided: held("north", 6, ""), want: held("north", 6, "web-v9/eu"),
		},
		"who holds nothing leaves the choice to those who do": {
			last:    held("east", 3, "", "west", 3, "web-v9/eu"),
			decided: held("west", 3, "", "north", 3, ""), want: held("west", 3, "web-v9/eu", "north", 3, "web-v9/eu"),
		},
		"who holds nothing goes on so": {
			last:    held("east", 3, "", "west", 3, "web-v9/eu"),
			decided: held("east", 4, "", "west", 2, ""), want: held("east", 4, "", "west", 2, "web-v9/eu"),
		},
		"what was decided elsewhere counts for nothing": {
			last: held("east", 3, ""), decided: held("east", 3, "web-v9/eu"), want: held("east", 3, ""),
		},
		"a cluster without replicas holds as well": {
			last: held("east", 0, "web-v7/eu"), decided: held("west", 0, ""), want: held("west", 0, "web-v7/eu"),
		},
		"nothing is decided": {last: held("east", 3, "web-v7/eu"), decided: nil, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			last, decided := test.last.String(), test.decided.String()
			got := test.decided.Holding(test.last)
			if !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if test.last.String() != last || test.decided.String() != decided {
				t.Error("an argument has changed")
			}
			if again := got.Holding(test.last); !again.Equal(got) {
				t.Errorf("again %s, want %s", again, got)
			}
		})
	}
}

func TestReleasing(t *testing.T) {
	for name, test := range map[string]struct {
		last, said, decided, want placement.Decision
		awaits                    bool
	}{
		"one that nobody speaks of takes over none while it awaits a release": {
			said: held("east", 0, "web-v9/eu"), decided: held("east", 2, "", "west", 1, ""), awaits: true, want: held("east", 2, "web-v9/eu", "west", 1, ""),
		},
		"one that a release has come to keeps what it holds while others await it": {
			last: held("east", 2, "web-v9/eu", "west", 1, ""), said: held("west", 0, "web-v9/us"), decided: held("east", 2, "", "west", 1, "", "north", 1, ""),
			awaits: true, want: held("east", 2, "web-v9/eu", "west", 1, "web-v9/us", "north", 1, ""),
		},
		"the replicas that are decided stay": {
			last: held("east", 3, ""), said: held("east", 99, "web-v7/eu"), decided: held("east", 3, ""), want: held("east", 3, "web-v7/eu"),
		},
		"one cluster is let go, the others hold on": {
			last: held("east", 3, "web-v7/eu", "west", 2, "web-v7/eu"), said: held("east", 0, "web-v8/eu"),
			decided: held("east", 3, "web-v7/eu", "west", 2, "web-v7/eu"), want: held("east", 3, "web-v8/eu", "west", 2, "web-v7/eu"),
		},
		"a cluster that is not decided gets no share": {
			last: held("east", 3, "web-v7/eu"), said: held("north", 9, "web-v8/eu"), decided: held("east", 3, ""), want: held("east", 3, "web-v7/eu"),
		},
		"a new cluster gets what is said for it": {
			last: held("east", 3, "web-v7/eu"), said: held("east", 0, "web-v7/eu", "west", 0, "web-v8/eu"),
			decided: held("east", 2, "", "west", 1, ""), want: held("east", 2, "web-v7/eu", "west", 1, "web-v8/eu"),
		},
		"one that nobody speaks of gets the first that is": {
			said: held("east", 0, "web-v9/eu"), decided: held("east", 2, "", "west", 1, ""), want: held("east", 2, "web-v9/eu", "west", 1, "web-v9/eu"),
		},
		"said without a revision it holds the object as it stands": {
			last: held("east", 3, "web-v7/eu", "west", 2, "web-v7/eu"), said: held("east", 0, "", "west", 0, ""),
			decided: held("east", 3, "web-v7/eu", "west", 2, "web-v7/eu"), want: held("east", 3, "", "west", 2, ""),
		},
		"an earlier revision is one like any other": {
			last: held("east", 3, "web-v8/eu"), said: held("east", 0, "web-v7/eu"), decided: held("east", 3, ""), want: held("east", 3, "web-v7/eu"),
		},
		"nothing is said": {
			last: held("east", 3, "web-v7/eu"), decided: held("west", 3, ""), want: held("west", 3, "web-v7/eu"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := test.last.String()
			if got := test.decided.Releasing(test.last, test.said, test.awaits); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if test.last.String() != last {
				t.Error("an argument has changed")
			}
		})
	}
}

func TestSettling(t *testing.T) {
	for name, test := range map[string]struct{ decided, want placement.Decision }{
		"nothing is decided":             {},
		"no release has come to any":     {held("east", 3, "", "west", 1, ""), held("east", 3, "", "west", 1, "")},
		"one has come to all":            {held("east", 3, "web-v1/eu", "west", 1, "web-v1/us"), held("east", 3, "web-v1/eu", "west", 1, "web-v1/us")},
		"who is left takes over the one": {held("east", 3, "web-v1/eu", "west", 1, ""), held("east", 3, "web-v1/eu", "west", 1, "web-v1/eu")},
		"or the first of several": {
			held("east", 3, "web-v2/eu", "north", 1, "web-v1/us", "west", 1, ""), held("east", 3, "web-v2/eu", "north", 1, "web-v1/us", "west", 1, "web-v1/us"),
		},
	} {
		before := test.decided.String()
		if got := test.decided.Settling(); !got.Equal(test.want) || test.decided.String() != before {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestANewClusterTakesOverNoRevisionBeforeItsStage(t *testing.T) {
	last := held("east", 2, "web-v1/eu", "west", 1, "")
	for awaits, want := range map[bool]placement.Decision{
		true:  held("east", 1, "web-v1/eu", "west", 1, "", "north", 1, ""),
		false: held("east", 1, "web-v1/eu", "west", 1, "", "north", 1, "web-v1/eu"),
	} {
		share := placement.Share{Replicas: 1}
		result := placement.Result{Decision: held("east", 1, "", "west", 1, "", "north", 1, ""), Verdicts: []placement.Verdict{{Cluster: "north", Share: &share}}}
		if result.Hold(last, awaits); !result.Decision.Equal(want) || result.Verdicts[0].Share.Revision != want["north"].Revision {
			t.Errorf("awaits %t: got %s, want %s", awaits, result.Decision, want)
		}
	}
}

func TestReleaseKeepsWhatIsRememberedBesides(t *testing.T) {
	const failure = `"fullUntil":"2026-01-02T03:04:05Z","failures":2`
	annotation := `{"east":{"replicas":3,"start":1,"revision":"web-v7","target":"eu"},"west":{` + failure + `}}`
	last, err := placement.ParseDecision(annotation)
	if err != nil {
		t.Fatal(err)
	}
	got, err := placement.Release(annotation, last, held("east", 0, "web-v8/eu"), false)
	if want := `{"east":{"replicas":3,"start":1,"revision":"web-v8","target":"eu"},"west":{` + failure + `}}`; got != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if got, err := placement.Release("", nil, held("east", 0, "web-v8/eu"), false); got != "" || err != nil {
		t.Errorf("of nothing comes %s, %v", got, err)
	}
	if _, err := placement.Release("east", nil, nil, false); err == nil {
		t.Error("what cannot be read can be released")
	}
}

func TestCheckRevisions(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		decision placement.Decision
		want     string
	}{
		"none":                          {held("east", 3, ""), ""},
		"revisions with targets":        {held("east", 3, "web-v7/eu", "west", 0, "web.shop-v12/default"), ""},
		"no name of a revision":         {held("east", 3, "web/eu"), `cluster "east": "web" is not the name of a revision`},
		"a chunk":                       {held("east", 3, "web-v7-1/eu"), "not the name of a revision"},
		"another namespace":             {held("east", 3, "Other:web-v7/eu"), "not the name of a revision"},
		"one that is too long":          {held("east", 3, long+"-v7/eu"), "not the name of a revision"},
		"no target":                     {held("east", 3, "web-v7"), `cluster "east": "" is not the name of a target of revision "web-v7"`},
		"a target that is none":         {held("east", 3, "web-v7/../eu"), "not the name of a target"},
		"a target of no revision":       {placement.Decision{"east": {Target: "eu"}}, `cluster "east": target "eu" of no revision`},
		"a cluster that is none":        {held("East!", 3, "web-v7/eu"), `cluster "East!"`},
		"of several the first in order": {held("west", 3, "web", "east", 3, "web"), `cluster "east"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.decision.CheckRevisions()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 300):
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestHeldAt(t *testing.T) {
	many := placement.Decision{}
	for i := range 50 {
		many[fmt.Sprintf("c%02d", i)] = placement.Share{Revision: fmt.Sprintf("web-v%d", 1+i%2), Target: "eu"}
	}
	for name, test := range map[string]struct {
		decision placement.Decision
		want     string
	}{
		"nowhere":             {held("east", 3, ""), ""},
		"everywhere the same": {held("east", 3, "web-v7/eu", "west", 0, "web-v7/us"), "held at web-v7 by Application web"},
		"in one of two":       {held("east", 3, "", "west", 3, "web-v7/us"), "held at web-v7 in west by Application web"},
		"in the order of revisions": {
			held("a", 3, "web-v10/eu", "b", 3, "web-v9/us", "c", 1, "web-v10/eu"), "held at web-v9 in b and at web-v10 in a and c by Application web",
		},
		"many": {many, "held at web-v1 in c00, c02, c04, c06, c08, c10, c12, c14 and 17 more and at web-v2 in c01, c03, c05, c07, c09, c11, c13, c15 and 17 more by Application web"},
	} {
		if got := test.decision.HeldAt(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
