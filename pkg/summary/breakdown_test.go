package summary

import (
	"reflect"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestBreakdown(t *testing.T) {
	tests := map[string]struct {
		reports map[string]Report
		want    string
	}{
		"nothing is no annotation": {nil, ""},
		"counters of every cluster, sorted": {
			map[string]Report{"west": progress(3, 1, 2, reasonUpdated), "east": done(3)},
			`{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"generation":2},` +
				`"west":{"replicas":3,"ready":2,"available":2,"updated":1,"generation":2}}`,
		},
		"a cluster that is silent": {
			map[string]Report{"east": and(done(1), silent)},
			`{"east":{"replicas":1,"ready":1,"available":1,"updated":1,"generation":2,"stale":true}}`,
		},
		"replicas that requests do not get to, of those that are ready": {
			map[string]Report{"east": and(done(2), unproxied(1)), "west": and(done(1), unproxied(3))},
			`{"east":{"replicas":2,"ready":2,"available":2,"updated":2,"unproxied":1,"generation":2},` +
				`"west":{"replicas":1,"ready":1,"available":1,"updated":1,"unproxied":1,"generation":2}}`,
		},
		"what a cluster lacks of a revision": {
			map[string]Report{"east": {Revision: "web-v2", Target: "eu", Lacks: "a Service"}}, `{"east":{"revision":"web-v2","target":"eu","lacks":"a Service"}}`,
		},
		"a cluster that cannot hold it":            {map[string]Report{"east": and(done(1), conflict)}, `{"east":{"problem":"the name is taken"}}`},
		"scaled to zero leaves the generation":     {map[string]Report{"east": done(0)}, `{"east":{"generation":2}}`},
		"a cluster that has not reported anything": {map[string]Report{"east": {}}, `{"east":{}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			breakdown := deploymentKind.build().BreakdownOf(test.reports)
			if got := breakdown.String(); got != test.want {
				t.Errorf("annotation = %s, want %s", got, test.want)
			}
			read, err := ParseBreakdown(test.want)
			if err != nil || !reflect.DeepEqual(read, breakdown) {
				t.Errorf("ParseBreakdown = %+v, %v, want %+v", read, err, breakdown)
			}
		})
	}
	t.Run("what cannot be read is an error", func(t *testing.T) {
		if _, err := ParseBreakdown(`["east"]`); err == nil {
			t.Error("ParseBreakdown reads a list")
		}
	})
	t.Run("fields of later versions are ignored", func(t *testing.T) {
		got, err := ParseBreakdown(`{"east":{"ready":1,"mood":"good"}}`)
		if want := (Breakdown{"east": {Ready: 1}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseBreakdown = %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestLeavingKeepsTheClustersThatADecisionDrops(t *testing.T) {
	both := placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 2, Start: 3}}
	for name, test := range map[string]struct {
		annotation    string
		before, after placement.Decision
		first         int32
		want          string
	}{
		"nothing is dropped":                           {annotation: `{"east":{"ready":1}}`, before: both, after: both, want: `{"east":{"ready":1}}`},
		"a first decision drops nothing":               {after: both, want: ""},
		"what reports already keeps its entry":         {annotation: `{"east":{"replicas":1}}`, before: both, after: placement.Decision{"west": {Replicas: 5}}, want: `{"east":{"replicas":1}}`},
		"what has not reported is entered":             {before: both, after: placement.Decision{"east": {Replicas: 5}}, want: `{"west":{"replicas":2,"start":3}}`},
		"ordinals are counted from the first":          {before: both, after: nil, first: 10, want: `{"east":{"replicas":3,"start":10},"west":{"replicas":2,"start":13}}`},
		"a damaged annotation loses what it said":      {annotation: "{", before: both, after: placement.Decision{"east": {Replicas: 5}}, want: `{"west":{"replicas":2,"start":3}}`},
		"a damaged annotation stays if nothing leaves": {annotation: "{", before: both, after: both, want: "{"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Leaving(test.annotation, test.before, test.after, test.first); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Whatever an annotation says, reading it ends with an error or a breakdown that is written as it was read.
func FuzzParseBreakdown(f *testing.F) {
	for _, seed := range []string{
		"", "{", "null", `{"east":null}`, `{"east":{"replicas":3,"start":2}}`, `{"east":{"replicas":1e99}}`, `{"a":{"replicas":-1}}`,
		`{"east":{"refused":{"pods":1}}}`, `{"":{"doubt":"\u0000"}}`, `[1]`, `{"east":{"replicas":2147483648}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		parsed, err := ParseBreakdown(annotation)
		if err != nil {
			return
		}
		text := parsed.String()
		again, err := ParseBreakdown(text)
		if err != nil || again.String() != text {
			t.Errorf("%q is read as %s, and that as %s, %v", annotation, text, again, err)
		}
		_ = Leaving(annotation, placement.Decision{"east": {Replicas: 1}}, nil, 0)
	})
}

func TestWhatClustersHoldOtherwise(t *testing.T) {
	got := ExceptionsOf(map[string]Report{"east": {Routes: "1", Generation: 3}, "west": {Generation: 3}, "north": {Routes: "2", Stale: true}}).String()
	if want := `{"east":{"routes":"1"},"north":{"routes":"2","stale":true}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ExceptionsOf(map[string]Report{"east": {Generation: 3}}).String(); got != "" {
		t.Errorf("nothing is held otherwise, and told: %s", got)
	}
	custom := CustomBreakdownOf(CustomInput{Reports: map[string]CustomReport{"east": {Generation: 1, Routes: "1"}, "west": {Stale: true}}},
		CustomBreakdown{"west": {Routes: "2"}}).String()
	if want := `{"east":{"generation":1,"routes":"1"},"west":{"routes":"2","stale":true}}`; custom != want {
		t.Errorf("%s, want %s", custom, want)
	}
}
