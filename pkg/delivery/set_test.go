package delivery

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var (
	v1 = Revision{Name: "web-v1", Hash: "aaa"}
	v2 = Revision{Name: "web-v2", Hash: "bbb"}
)

func TestFingerprintTellsApartWhatMakesOtherPods(t *testing.T) {
	base := Part{Revision: v1, Replicas: map[string]int32{"Deployment/web": 2, "Deployment/api": 1}}
	for name, test := range map[string]struct {
		other Part
		same  bool
	}{
		"the same":                       {other: Part{Revision: v1, Replicas: map[string]int32{"Deployment/api": 1, "Deployment/web": 2}}, same: true},
		"traffic makes no pods":          {other: Part{Revision: v1, Replicas: base.Replicas, Traffic: 50, Routed: true}, same: true},
		"another revision":               {other: Part{Revision: v2, Replicas: base.Replicas}},
		"a revision of the same name":    {other: Part{Revision: Revision{Name: "web-v1", Hash: "ccc"}, Replicas: base.Replicas}},
		"more replicas":                  {other: Part{Revision: v1, Replicas: map[string]int32{"Deployment/web": 3, "Deployment/api": 1}}},
		"the replicas of another":        {other: Part{Revision: v1, Replicas: map[string]int32{"Deployment/web": 1, "Deployment/api": 2}}},
		"a workload less":                {other: Part{Revision: v1, Replicas: map[string]int32{"Deployment/web": 2}}},
		"the primary, which has no size": {other: Part{Revision: v1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := base.Fingerprint() == test.other.Fingerprint(); got != test.same {
				t.Errorf("%q and %q: same is %t", base.Fingerprint(), test.other.Fingerprint(), got)
			}
		})
	}
}

func TestSetsAreComparedByCluster(t *testing.T) {
	set := func() Set {
		return Set{
			Primary: {Clusters: map[string]Part{"east": {Revision: v1, Traffic: 90}, "west": {Revision: v1, Traffic: 100}}},
			Canary:  {Suffix: "canary", Clusters: map[string]Part{"east": {Revision: v2, Traffic: 10, Replicas: map[string]int32{"Deployment/web": 1}}}},
		}
	}
	for name, test := range map[string]struct {
		change func(Set)
		differ []string
	}{
		"nothing":               {change: func(Set) {}},
		"a revision":            {change: func(s Set) { s[Primary].Clusters["west"] = Part{Revision: v2, Traffic: 100} }, differ: []string{"west"}},
		"a share":               {change: func(s Set) { s[Primary].Clusters["west"] = Part{Revision: v1, Traffic: 99} }, differ: []string{"west"}},
		"a size":                {change: func(s Set) { s[Canary].Clusters["east"].Replicas["Deployment/web"] = 2 }, differ: []string{"east"}},
		"a part less":           {change: func(s Set) { delete(s[Primary].Clusters, "west") }, differ: []string{"west"}},
		"a part more":           {change: func(s Set) { s[Canary].Clusters["west"] = Part{Revision: v2} }, differ: []string{"west"}},
		"a variant less":        {change: func(s Set) { delete(s, Canary) }, differ: []string{"east"}},
		"what its names end in": {change: func(s Set) { c := s[Canary]; c.Suffix = "new"; s[Canary] = c }, differ: []string{"east"}},
		"how it is patched": {change: func(s Set) {
			c := s[Canary]
			c.Patches = []v1alpha1.VariantPatch{{YAMLOps: []v1alpha1.VariantPatchOp{{Path: "$.a", Value: "b"}}}}
			s[Canary] = c
		}, differ: []string{"east"}},
		"whether it has a Service": {change: func(s Set) { c := s[Canary]; c.Service = true; s[Canary] = c }, differ: []string{"east"}},
	} {
		t.Run(name, func(t *testing.T) {
			was := set()
			other := was.Clone()
			test.change(other)
			if !was.Equal(set()) {
				t.Fatal("a clone shares what was changed in it")
			}
			var differ []string
			for _, cluster := range []string{"east", "west"} {
				if was.Differs(other, cluster) != other.Differs(was, cluster) {
					t.Errorf("%s differs one way only", cluster)
				}
				if was.Differs(other, cluster) {
					differ = append(differ, cluster)
				}
			}
			if strings.Join(differ, " ") != strings.Join(test.differ, " ") || was.Equal(other) != (len(differ) == 0) {
				t.Errorf("%v differ, want %v", differ, test.differ)
			}
		})
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("plain")
	f.Add(strings.Repeat("\xff", 1000))
	f.Add(strings.Repeat("é", 257))
	f.Add("done\x1b[2J\r\nStage: approved")
	f.Fuzz(func(t *testing.T, text string) {
		if said := Said(text); !utf8.ValidString(said) || utf8.RuneCountInString(said) > 259 {
			t.Errorf("%q is said as %q", text, said)
		} else if strings.ContainsFunc(said, unicode.IsControl) {
			t.Errorf("%q is said as %q, which a terminal obeys", text, said)
		}
	})
}

func TestASetIsPutTogetherOfItsClusters(t *testing.T) {
	set := Set{
		Primary: {Clusters: map[string]Part{"east": {Revision: v1, Traffic: 90}, "west": {Revision: v1, Traffic: 100}}},
		Canary:  {Suffix: "canary", Clusters: map[string]Part{"east": {Revision: v2, Traffic: 10}}},
	}
	before := set.Clone()
	if east := set.Only("east"); len(east) != 2 || len(east.Clusters()) != 1 || set.Differs(east, "east") {
		t.Errorf("of east: %v", east)
	}
	if west := set.Only("west"); len(west) != 1 || set.Differs(west, "west") {
		t.Errorf("of west: %v", west)
	}
	other := set.With("east", set.Only("west"))
	if got := other.Clusters(); len(got) != 1 || got[0] != "west" || len(other[Canary].Clusters) > 0 {
		t.Errorf("with nothing in east: %v", other)
	}
	if again := other.With("east", set); !again.Equal(set) {
		t.Errorf("put together again: %v", again)
	}
	if !set.Equal(before) {
		t.Error("the set has changed")
	}
}
