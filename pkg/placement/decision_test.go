package placement_test

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestParseDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		want       placement.Decision
		wantErr    string
	}{
		"nothing is the empty decision":          {annotation: ""},
		"an empty object is the empty decision":  {annotation: "{}"},
		"shares by cluster":                      {annotation: `{"west":{"replicas":3},"east":{"replicas":0}}`, want: build.Shares("east", 0, "west", 3)},
		"all that a share may have":              {annotation: `{"a":{"replicas":1,"copy":true},"b":{"replicas":2,"start":10,"revision":"web-v7","target":"hoge"}}`, want: placement.Decision{"a": {Replicas: 1, Copy: true}, "b": {Replicas: 2, Start: 10, Revision: "web-v7", Target: "hoge"}}},
		"a revision beside a failure":            {annotation: `{"a":{"replicas":1,"revision":"web-v7","target":"hoge","fullUntil":"2026-01-02T03:04:05Z","failures":2}}`, want: placement.Decision{"a": {Replicas: 1, Revision: "web-v7", Target: "hoge"}}},
		"in another order, and with spaces":      {annotation: ` {"a":{"copy":true, "replicas":1}}`, want: placement.Decision{"a": {Replicas: 1, Copy: true}}},
		"of one cluster named twice, the last":   {annotation: `{"a":{"replicas":1,"copy":true},"a":{"replicas":2}}`, want: build.Shares("a", 2)},
		"names that need quoting":                {annotation: `{"a\"b":{"replicas":1}}`, want: build.Shares(`a"b`, 1)},
		"what a newer version wrote is ignored":  {annotation: `{"east":{"replicas":3,"colour":7}}`, want: build.Shares("east", 3)},
		"what is not JSON":                       {annotation: `east`, wantErr: `parse placement "east"`},
		"what is not an object":                  {annotation: `["east"]`, wantErr: "cannot unmarshal array"},
		"a revision that is no name":             {annotation: `{"east":{"replicas":3,"revision":7}}`, wantErr: "cannot unmarshal number"},
		"something behind the object":            {annotation: `{}{}`, wantErr: "after top-level value"},
		"a negative share":                       {annotation: `{"east":{"replicas":-1}}`, wantErr: `cluster "east" has -1 replicas`},
		"a share that is too large for a number": {annotation: `{"east":{"replicas":2147483648}}`, wantErr: "cannot unmarshal number"},
		"a cluster without a name":               {annotation: `{"":{"replicas":1}}`, wantErr: "a cluster has no name"},
		"a long one is quoted in part":           {annotation: strings.Repeat("x", 5000), wantErr: `xxx": `},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := placement.ParseDecision(tc.annotation)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(err.Error()) > 300 {
					t.Fatalf("error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || !got.Equal(tc.want) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestDecisionIsCanonical(t *testing.T) {
	d := build.Shares("west", 3, "east", 2)
	if got, want := d.String(), `{"east":{"replicas":2},"west":{"replicas":3}}`; got != want {
		t.Errorf("string %s, want %s", got, want)
	}
	held := placement.Decision{"west": {Replicas: 3, Revision: "web-v7", Target: "hoge"}, "east": {Replicas: 2, Start: 3, Revision: "web-v8"}}
	if got, want := held.String(), `{"east":{"replicas":2,"start":3,"revision":"web-v8"},"west":{"replicas":3,"revision":"web-v7","target":"hoge"}}`; got != want {
		t.Errorf("string %s, want %s", got, want)
	}
	if got := d.Total(); got != 5 {
		t.Errorf("total %d, want 5", got)
	}
	if got := strings.Join(d.Clusters(), " "); got != "east west" {
		t.Errorf("clusters %s", got)
	}
	if got := placement.Decision(nil).String() + (placement.Decision{}).String(); got != "" {
		t.Errorf("the empty decision reads %q", got)
	}
	if !placement.Decision(nil).Equal(placement.Decision{}) || d.Equal(build.Shares("east", 2)) || d.Equal(build.Shares("east", 2, "west", 4)) ||
		held.Equal(placement.Decision{"west": held["west"], "east": {Replicas: 2, Start: 3, Revision: "web-v7"}}) {
		t.Error("Equal compares names and shares with their revisions, and nil with empty as equal")
	}
}
