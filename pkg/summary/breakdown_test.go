package summary

import (
	"reflect"
	"testing"
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
