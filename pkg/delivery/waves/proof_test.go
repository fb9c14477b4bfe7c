package waves

import (
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v1  = delivery.Revision{Name: "web-v1", Hash: "aaa"}
	v2  = delivery.Revision{Name: "web-v2", Hash: "bbb"}
)

// Rule 1. Each case but the first is a report that looks well and proves nothing.
func TestOnlyAReportOfThisVeryPartProvesIt(t *testing.T) {
	part := delivery.Part{Revision: v2, Traffic: 100}
	good := delivery.Report{Fingerprint: part.Fingerprint(), Current: true, Ready: true, ReadySince: now.Add(-time.Minute)}
	for name, test := range map[string]struct {
		edit     int64 // of the report; the last one is the third
		change   func(*delivery.Report)
		unwanted bool // the set does not have the variant
		gone     bool // the cluster does not report it
		// unapplied is told of what is still to be applied.
		unapplied string
		minReady  time.Duration
		ready     time.Time
		want      Verdict
	}{
		"all is proven":                     {edit: 3, want: Verdict{Done: true, Ready: true}},
		"a later edit is as good":           {edit: 4, want: Verdict{Done: true, Ready: true}},
		"a report of an earlier edit":       {edit: 2, want: Verdict{Message: `waiting for cluster "east" to report on what it is to run`}},
		"that, if it is told how far it is": {edit: 2, unapplied: "7 of 9 objects are applied", want: Verdict{Message: `waiting for cluster "east" to report on what it is to run: 7 of 9 objects are applied`}},
		"ready with another revision":       {edit: 3, change: func(r *delivery.Report) { r.Fingerprint = delivery.Part{Revision: v1}.Fingerprint() }, want: Verdict{Message: `waiting for cluster "east" to apply the primary of web-v2`}},
		"another revision of that name":     {edit: 3, change: func(r *delivery.Report) { r.Fingerprint = "web-v2@ccc" }, want: Verdict{Message: `waiting for cluster "east" to apply the primary of web-v2`}},
		"not applied, and why":              {edit: 3, change: func(r *delivery.Report) { r.Fingerprint, r.Waiting = "", "no right" }, want: Verdict{Message: `waiting for cluster "east" to apply the primary of web-v2: no right`}},
		"nothing is reported":               {edit: 3, gone: true, want: Verdict{Message: `waiting for cluster "east" to apply the primary of web-v2`}},
		"a status of an older generation":   {edit: 3, change: func(r *delivery.Report) { r.Current = false }, want: Verdict{Message: `waiting for the controllers of cluster "east" to see the primary of web-v2`}},
		"not ready":                         {edit: 3, change: func(r *delivery.Report) { r.Ready = false }, want: Verdict{Message: `waiting for the primary of web-v2 to be ready in cluster "east"`}},
		"not ready, and why":                {edit: 3, change: func(r *delivery.Report) { r.Ready, r.Waiting = false, "0/1 nodes" }, want: Verdict{Message: `waiting for the primary of web-v2 to be ready in cluster "east": 0/1 nodes`}},
		"not ready for long enough":         {edit: 3, minReady: 2 * time.Minute, ready: now.Add(-3 * time.Second), want: Verdict{Ready: true, At: now.Add(117 * time.Second), Message: `the primary of web-v2 has to be ready in cluster "east" for 2m0s`}},
		"a clock that is fast":              {edit: 3, minReady: 5 * time.Second, ready: now.Add(-3 * time.Second), change: func(r *delivery.Report) { r.ReadySince = now.Add(time.Hour) }, want: Verdict{Ready: true, At: now.Add(2 * time.Second), Message: `the primary of web-v2 has to be ready in cluster "east" for 5s`}},
		"a clock that is slow":              {edit: 3, minReady: 5 * time.Second, change: func(r *delivery.Report) { r.ReadySince = now.Add(-24 * time.Hour) }, want: Verdict{Ready: true, At: now.Add(5 * time.Second), Message: `the primary of web-v2 has to be ready in cluster "east" for 5s`}},
		"refused":                           {edit: 3, change: func(r *delivery.Report) { r.Failure = "denied" }, want: Verdict{Failed: true, Message: `cluster "east" refuses the primary of web-v2: denied`}},
		"refused earlier":                   {edit: 2, change: func(r *delivery.Report) { r.Failure = "denied" }, want: Verdict{Message: `waiting for cluster "east" to report on what it is to run`}},
		"what is to go is gone":             {edit: 3, unwanted: true, gone: true, want: Verdict{Done: true, Ready: true}},
		"what is to go is there":            {edit: 3, unwanted: true, want: Verdict{Message: `waiting for the primary to be gone from cluster "east"`}},
		"what is to go was never reported":  {edit: 2, unwanted: true, gone: true, want: Verdict{Message: `waiting for cluster "east" to report on what it is to run`}},
	} {
		t.Run(name, func(t *testing.T) {
			look := Look{Cluster: "east", Edit: 3, Now: now, Set: delivery.Set{}, Seen: delivery.Cluster{Edit: test.edit, Unapplied: test.unapplied, Variants: map[string]delivery.Report{}}}
			if !test.unwanted {
				look.Set[delivery.Primary] = delivery.Variant{Clusters: map[string]delivery.Part{"east": part}}
			}
			if !test.gone {
				report := good
				if test.change != nil {
					test.change(&report)
				}
				look.Seen.Variants[delivery.Primary] = report
			}
			if got := look.Runs(delivery.Primary, test.minReady, test.ready); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestRoutesAreProvenByWhatIsInForce(t *testing.T) {
	set := delivery.Set{
		delivery.Primary: {Clusters: map[string]delivery.Part{"east": {Traffic: 90}}},
		delivery.Canary:  {Clusters: map[string]delivery.Part{"east": {Traffic: 10}}},
	}
	for name, test := range map[string]struct {
		edit    int64
		weights map[string]int32
		want    string
	}{
		"all weights are in force":        {edit: 3, weights: map[string]int32{"primary": 90, "canary": 10}},
		"one is not":                      {edit: 3, weights: map[string]int32{"primary": 100, "canary": 0}, want: `waiting for cluster "east" to send 10% of the traffic to the canary`},
		"one is not reported":             {edit: 3, weights: map[string]int32{"primary": 90}, want: `waiting for cluster "east" to send 10% of the traffic to the canary`},
		"what is to have none still has":  {edit: 3, weights: map[string]int32{"primary": 90, "canary": 10, "baseline": 5}, want: `waiting for cluster "east" to take the traffic from variant baseline`},
		"what is to have none has none":   {edit: 3, weights: map[string]int32{"primary": 90, "canary": 10, "baseline": 0}},
		"they are those of an older edit": {edit: 2, weights: map[string]int32{"primary": 90, "canary": 10}, want: `waiting for cluster "east" to report on the shares of the traffic`},
	} {
		t.Run(name, func(t *testing.T) {
			look := Look{Cluster: "east", Edit: 3, Now: now, Set: set, Seen: delivery.Cluster{Edit: test.edit, Variants: map[string]delivery.Report{}}}
			for variant, weight := range test.weights {
				look.Seen.Variants[variant] = delivery.Report{Weight: weight}
			}
			if got := look.Routes(); got.Message != test.want || got.Done != (test.want == "") {
				t.Errorf("%+v, want %q", got, test.want)
			}
		})
	}
}

// A cluster writes what it likes.
func TestWhatAClusterSaysIsCut(t *testing.T) {
	part := delivery.Part{Revision: v2}
	look := Look{Cluster: "east", Now: now, Set: delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{"east": part}}}, Seen: delivery.Cluster{}}
	for _, report := range []delivery.Report{
		{Failure: strings.Repeat("\xff", 1<<20)},
		{Fingerprint: part.Fingerprint(), Current: true, Waiting: strings.Repeat("x", 1<<20)},
	} {
		look.Seen.Variants = map[string]delivery.Report{delivery.Primary: report}
		if got := look.Runs(delivery.Primary, 0, time.Time{}); len(got.Message) > 2000 || got.Done {
			t.Errorf("%d bytes of what it says are repeated", len(got.Message))
		}
	}
}
