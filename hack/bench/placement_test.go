package main

import (
	"reflect"
	"testing"
)

func TestParseDecisionsReadsWhatGoTestPrints(t *testing.T) {
	out := `goos: linux
BenchmarkPlace/Even/settled-2         	     150	    430000 ns/op	         0.25 allocs/cluster	       388.2 p50-µs	      1852 p99-µs
BenchmarkPlace/minReplicas,_packed-16 	     150	    430000 ns/op	         1.5 allocs/cluster	       90 p50-µs	      100.5 p99-µs
PASS
`
	got, err := parseDecisions([]byte(out), placeGoal)
	want := []decisionLine{
		{Decision: "Even/settled", P50: 388.2, P99: 1852, Allocs: 0.25, Goal: placeGoal},
		{Decision: "minReplicas, packed", P50: 90, P99: 100.5, Allocs: 1.5, Goal: placeGoal},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if got[0].met() != "no" || got[1].met() != "yes" {
		t.Errorf("met %s and %s, want no and yes", got[0].met(), got[1].met())
	}
	if _, err := parseDecisions([]byte("PASS\n"), placeGoal); err == nil {
		t.Error("no figures are no error")
	}
}
