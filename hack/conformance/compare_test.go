package main

import (
	"reflect"
	"regexp"
	"testing"
)

func TestDifferences(t *testing.T) {
	passing := []string{"a", "b"}
	tests := map[string]struct {
		logical []result
		known   string
		want    []difference
	}{
		"what passes on both sides is no difference": {
			logical: []result{{Name: "a", State: statePassed}},
		},
		"what passes on neither side is no difference": {
			logical: []result{{Name: "c", State: "failed"}},
		},
		"what passes on stock alone is one": {
			logical: []result{{Name: "a", State: "failed", Message: "no"}, {Name: "b", State: "timedout"}},
			want: []difference{
				{result: result{Name: "a", State: "failed", Message: "no"}}, {result: result{Name: "b", State: "timedout"}},
			},
		},
		"what is skipped on the logical cluster is one": {
			logical: []result{{Name: "b", State: stateSkipped}},
			want:    []difference{{result: result{Name: "b", State: stateSkipped}}},
		},
		"what is written down is known": {
			logical: []result{{Name: "b", State: "failed"}},
			known:   "- `b`: its nodes are clusters.",
			want:    []difference{{result: result{Name: "b", State: "failed"}, Known: true}},
		},
		"what was not run is no difference": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := differences(passing, tt.logical, tt.known); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("differences() = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestOutdatedDifferencesAreThoseThatPass(t *testing.T) {
	logical := []result{{Name: "a", State: statePassed}, {Name: "b", State: statePassed}, {Name: "c", State: "failed"}}
	if got, want := outdated(logical, "- `b`: slow\n- `c`: nodes are clusters"), []string{"b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("outdated() = %q, want %q", got, want)
	}
}

func TestRenew(t *testing.T) {
	tests := map[string]struct {
		passing []string
		results []result
		want    []string
	}{
		"a spec that passes is added in order": {
			passing: []string{"b"},
			results: []result{{Name: "c", State: statePassed}, {Name: "a", State: statePassed}, {Name: "b", State: statePassed}},
			want:    []string{"a", "b", "c"},
		},
		"a spec that passes no more is removed": {
			passing: []string{"a", "b"},
			results: []result{{Name: "a", State: "timedout"}, {Name: "b", State: statePassed}},
			want:    []string{"b"},
		},
		"a spec that was not run stays": {
			passing: []string{"a", "b"},
			results: []result{{Name: "b", State: "failed"}},
			want:    []string{"a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := renew(tt.passing, tt.results); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("renew() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	tests := map[string]struct {
		focus, skip string
		want        bool
	}{
		"no expressions want everything":    {want: true},
		"the focus is found":                {focus: "Deploy", want: true},
		"the focus is not found":            {focus: "StatefulSet"},
		"what is skipped is skipped":        {focus: "Deploy", skip: "sig-apps"},
		"what is not to be skipped is kept": {skip: "sig-network", want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := newFilter(tt.focus, tt.skip)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.wants("[sig-apps] Deployment should run [Conformance]"); got != tt.want {
				t.Errorf("wants() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestExactly(t *testing.T) {
	expression := regexp.MustCompile(exactly([]string{"[sig-a] runs (at once)", "[sig-b] stops"}))
	tests := map[string]struct {
		name string
		want bool
	}{
		"a name of the list":           {name: "[sig-a] runs (at once)", want: true},
		"another name of the list":     {name: "[sig-b] stops", want: true},
		"a name that goes on":          {name: "[sig-b] stops twice"},
		"a name that begins elsewhere": {name: "[sig-x][sig-b] stops"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := expression.MatchString("Kubernetes e2e suite " + tt.name); got != tt.want {
				t.Errorf("%q matches: %t, want %t", tt.name, got, tt.want)
			}
		})
	}
}
