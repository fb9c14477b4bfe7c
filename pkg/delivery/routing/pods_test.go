package routing

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPods(t *testing.T) {
	web := func(n int32) map[string]int32 { return map[string]int32{"Deployment/web": n} }
	for name, test := range map[string]struct {
		shares  map[string]int32
		primary map[string]int32
		want    string
	}{
		"a fifth of all pods":                     {shares: map[string]int32{"primary": 80, "canary": 20}, primary: web(8), want: "canary Deployment/web=2"},
		"as near as whole pods allow, from below": {shares: map[string]int32{"primary": 80, "canary": 20}, primary: web(5), want: "canary Deployment/web=1"},
		"and from above":                          {shares: map[string]int32{"primary": 70, "canary": 30}, primary: web(4), want: "canary Deployment/web=2"},
		"one pod at least":                        {shares: map[string]int32{"primary": 99, "canary": 1}, primary: web(3), want: "canary Deployment/web=1"},
		"one pod at least of each copy":           {shares: map[string]int32{"primary": 98, "canary": 1, "baseline": 1}, primary: web(3), want: "baseline Deployment/web=1 canary Deployment/web=1"},
		"two copies of the same share":            {shares: map[string]int32{"primary": 60, "canary": 20, "baseline": 20}, primary: web(6), want: "baseline Deployment/web=2 canary Deployment/web=2"},
		"more than the primary has":               {shares: map[string]int32{"primary": 20, "canary": 80}, primary: web(3), want: "canary Deployment/web=12"},
		"everything takes as many":                {shares: map[string]int32{"primary": 0, "canary": 100}, primary: web(3), want: "canary Deployment/web=3"},
		"nothing has no size":                     {shares: map[string]int32{"primary": 100, "canary": 0}, primary: web(3)},
		"nor has anything beside no pods":         {shares: map[string]int32{"primary": 80, "canary": 20}, primary: web(0)},
		"nor beside what nobody knows":            {shares: map[string]int32{"primary": 80, "canary": 20}},
		"nor what cannot be made":                 {shares: map[string]int32{"primary": 10, "canary": 90}, primary: web(3)},
		"workloads have what the primary's have": {
			shares: map[string]int32{"primary": 50, "canary": 50}, primary: map[string]int32{"Deployment/web": 3, "Deployment/api": 1},
			want: "canary Deployment/api=1 canary Deployment/web=3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for variant, workloads := range Pods(test.shares, test.primary) {
				for workload, n := range workloads {
					got = append(got, fmt.Sprintf("%s %s=%d", variant, workload, n))
				}
			}
			if slices.Sort(got); strings.Join(got, " ") != test.want {
				t.Errorf("%v, want %s", got, test.want)
			}
		})
	}
}

// No other number of pods makes a share that is nearer, unless it is none.
func TestNoNumberOfPodsIsNearer(t *testing.T) {
	for primary := range int32(40) {
		for share := int32(1); share <= 80; share++ {
			sizes := Pods(map[string]int32{"primary": 100 - share, "canary": share}, map[string]int32{"web": primary + 1})
			off := func(n int32) float64 { return math.Abs(float64(n)/float64(primary+1+n) - float64(share)/100) }
			n := sizes["canary"]["web"]
			if n < 1 || n > 1 && off(n-1) < off(n)-1e-9 || off(n+1) < off(n)-1e-9 {
				t.Fatalf("%d%% beside %d pods are %d", share, primary+1, n)
			}
		}
	}
}

func TestPodsOfRandomShares(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 20_000 {
		shares := map[string]int32{"canary": 1 + r.Int32N(60), "baseline": r.Int32N(40)}
		shares["primary"] = 100 - shares["canary"] - shares["baseline"]
		primary := map[string]int32{"web": r.Int32N(30), "api": r.Int32N(3)}
		was := maps.Clone(primary)
		sizes := Pods(shares, primary)
		if !maps.Equal(primary, was) {
			t.Fatal("the arguments have changed")
		}
		if ByPods(shares) != nil || primary["web"]+primary["api"] == 0 {
			if sizes != nil {
				t.Fatalf("%v of %v: %v", shares, primary, sizes)
			}
			continue
		}
		all := float64(primary["web"] + primary["api"])
		for _, workloads := range sizes {
			all += float64(workloads["web"] + workloads["api"])
		}
		for name, workloads := range sizes {
			n := float64(workloads["web"] + workloads["api"])
			if ideal := all * float64(shares[name]) / 100; n < 1 || n > 2 && math.Abs(n-ideal) > 2 {
				t.Fatalf("%v of %v: the %s has %g of %g, which would be %g", shares, primary, name, n, all, ideal)
			}
		}
	}
}

func TestSharesThatNumbersOfPodsCannotMake(t *testing.T) {
	for name, test := range map[string]struct {
		shares map[string]int32
		want   string
	}{
		"one gets everything":                   {shares: map[string]int32{"primary": 0, "canary": 100, "baseline": 0}},
		"each gets a part":                      {shares: map[string]int32{"primary": 80, "canary": 10, "baseline": 10}},
		"nobody runs":                           {},
		"one would get what it is not to get":   {shares: map[string]int32{"primary": 80, "canary": 20, "baseline": 0}, want: "traffic.baseline: by numbers of pods either"},
		"the primary would":                     {shares: map[string]int32{"primary": 0, "canary": 50, "baseline": 50}, want: "traffic.primary: by numbers of pods either"},
		"there is no primary to count from":     {shares: map[string]int32{"canary": 50, "baseline": 50}, want: "traffic.baseline: by numbers of pods the primary must run"},
		"as many as there may be":               {shares: map[string]int32{"primary": 20, "canary": 80}},
		"copies would be many times the number": {shares: map[string]int32{"primary": 19, "canary": 81}, want: "traffic.primary: by numbers of pods the primary gets 0%, or 20% and more"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ByPods(test.shares)
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
