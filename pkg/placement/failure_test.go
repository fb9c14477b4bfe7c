package placement_test

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestFailuresAreStoredBesideTheDecision(t *testing.T) {
	r := placement.Result{
		Decision: build.Shares("west", 3, "north", 1),
		Failures: placement.Failures{"east": {Until: build.Noon, Times: 2}, "north": {Until: build.Noon.Add(time.Hour), Times: 1}},
	}
	want := `{"east":{"fullUntil":"2026-05-01T12:00:00Z","failures":2},` +
		`"north":{"replicas":1,"fullUntil":"2026-05-01T13:00:00Z","failures":1},"west":{"replicas":3}}`
	if got := r.Annotation(); got != want {
		t.Fatalf("annotation\n %s, want\n %s", got, want)
	}
	decision, err := placement.ParseDecision(want)
	if err != nil || !decision.Equal(r.Decision) {
		t.Errorf("decision %s, %v, want %s", decision, err, r.Decision)
	}
	failures, err := placement.ParseFailures(want)
	if err != nil || !failures.Equal(r.Failures) {
		t.Errorf("failures %v, %v, want %v", failures, err, r.Failures)
	}
	r.Failures = nil
	if got := r.Annotation(); got != r.Decision.String() {
		t.Errorf("without failures %s, want %s", got, r.Decision)
	}
	for _, annotation := range []string{"", `{"east":{"replicas":1}}`} {
		if failures, err := placement.ParseFailures(annotation); err != nil || failures != nil {
			t.Errorf("%q has failures %v, %v", annotation, failures, err)
		}
	}
	if _, err := placement.ParseFailures(`{"east":{"fullUntil":"noon"}}`); err == nil {
		t.Error("what is not a time was read as one")
	}
}

func TestNextFailure(t *testing.T) {
	for name, test := range map[string]struct {
		failures placement.Failures
		want     time.Time
	}{
		"nothing to wait for":              {},
		"the end of the first":             {failures: placement.Failures{"east": {build.Noon.Add(3 * time.Minute), 1}, "west": {build.Noon.Add(2 * time.Minute), 1}}, want: build.Noon.Add(2 * time.Minute)},
		"when one is forgotten that ended": {failures: placement.Failures{"east": {build.Noon.Add(-time.Minute), 1}}, want: build.Noon.Add(9 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.failures.Next(build.TwoMinutes, build.Noon); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
