package placement

import (
	"testing"
	"time"
)

func TestFailuresAreStoredBesideTheDecision(t *testing.T) {
	r := Result{
		Decision: shares("west", 3, "north", 1),
		Failures: Failures{"east": {Until: noon, Times: 2}, "north": {Until: noon.Add(time.Hour), Times: 1}},
	}
	want := `{"east":{"fullUntil":"2026-05-01T12:00:00Z","failures":2},` +
		`"north":{"replicas":1,"fullUntil":"2026-05-01T13:00:00Z","failures":1},"west":{"replicas":3}}`
	if got := r.Annotation(); got != want {
		t.Fatalf("annotation\n %s, want\n %s", got, want)
	}
	decision, err := ParseDecision(want)
	if err != nil || !decision.Equal(r.Decision) {
		t.Errorf("decision %s, %v, want %s", decision, err, r.Decision)
	}
	failures, err := ParseFailures(want)
	if err != nil || !failures.Equal(r.Failures) {
		t.Errorf("failures %v, %v, want %v", failures, err, r.Failures)
	}
	r.Failures = nil
	if got := r.Annotation(); got != r.Decision.String() {
		t.Errorf("without failures %s, want %s", got, r.Decision)
	}
	for _, annotation := range []string{"", `{"east":{"replicas":1}}`} {
		if failures, err := ParseFailures(annotation); err != nil || failures != nil {
			t.Errorf("%q has failures %v, %v", annotation, failures, err)
		}
	}
	if _, err := ParseFailures(`{"east":{"fullUntil":"noon"}}`); err == nil {
		t.Error("what is not a time was read as one")
	}
}

func TestFailuresCountForLongerEachTime(t *testing.T) {
	clusters := snapshot(cluster("east", 9), cluster("west", 9))
	for name, test := range map[string]struct {
		before Failures
		want   Failures
	}{
		"the first time": {want: Failures{"east": {Until: noon.Add(10 * time.Minute), Times: 1}}},
		"again, soon after": {
			before: Failures{"east": {Until: noon.Add(-time.Minute), Times: 1}},
			want:   Failures{"east": {Until: noon.Add(20 * time.Minute), Times: 2}},
		},
		"more pods of the same time": {
			before: Failures{"east": {Until: noon.Add(time.Minute), Times: 1}},
			want:   Failures{"east": {Until: noon.Add(10 * time.Minute), Times: 1}},
		},
		"again and again": {
			before: Failures{"east": {Until: noon.Add(-time.Minute), Times: 40}},
			want:   Failures{"east": {Until: noon.Add(640 * time.Minute), Times: 41}},
		},
		"long after another": {
			before: Failures{"east": {Until: noon.Add(-10 * time.Minute), Times: 1}},
			want:   Failures{"east": {Until: noon.Add(10 * time.Minute), Times: 1}},
		},
		"what another cluster failed at is kept": {
			before: Failures{"north": {Until: noon.Add(time.Minute), Times: 3}},
			want:   Failures{"north": {Until: noon.Add(time.Minute), Times: 3}, "east": {Until: noon.Add(10 * time.Minute), Times: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := deployment(2).pinned("east", "west").on(shares("east", 2)).stuck("east", 1)
			r.Workload.Failures = test.before
			if got := Place(clusters, r.Request).Failures; !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestNextFailure(t *testing.T) {
	for name, test := range map[string]struct {
		failures Failures
		want     time.Time
	}{
		"nothing to wait for":              {},
		"the end of the first":             {failures: Failures{"east": {noon.Add(3 * time.Minute), 1}, "west": {noon.Add(2 * time.Minute), 1}}, want: noon.Add(2 * time.Minute)},
		"when one is forgotten that ended": {failures: Failures{"east": {noon.Add(-time.Minute), 1}}, want: noon.Add(9 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.failures.Next(twoMinutes, noon); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
