package v1alpha1

import (
	"strings"
	"testing"
)

func TestTheViewIsTakenOffAPath(t *testing.T) {
	for path, want := range map[string][2]string{
		"/clusters/east":                        {"east", "/"},
		"/clusters/east/":                       {"east", "/"},
		"/clusters/east/api/v1/pods":            {"east", "/api/v1/pods"},
		"/clusters/east/clusters/west/api":      {"east", "/clusters/west/api"},
		"/clusters/east//api":                   {"east", "//api"},
		"/clusters/":                            {},
		"/clusters//api":                        {},
		"/clusters/../api":                      {},
		"/clusters/East/api":                    {},
		"/clusters/east.example/api":            {},
		"/clustersx/east/api":                   {},
		"/api/v1/pods":                          {},
		"clusters/east/api":                     {},
		"/clusters/" + strings.Repeat("a", 64):  {},
		"/apis/manifold.dev/v1alpha1/clusters/": {},
	} {
		cluster, rest, ok := CutViewPath(path)
		if want[0] == "" {
			if ok || rest != path {
				t.Errorf("%s is taken for the view of %q", path, cluster)
			}
			continue
		}
		if !ok || cluster != want[0] || rest != want[1] {
			t.Errorf("%s: cluster %q, rest %q, want %v", path, cluster, rest, want)
		}
	}
	if cluster, rest, ok := CutViewPath(ViewPath("east") + "/version"); !ok || cluster != "east" || rest != "/version" {
		t.Errorf("what ViewPath makes is read as %q, %q", cluster, rest)
	}
}

func FuzzCutViewPath(f *testing.F) {
	for _, path := range []string{"/clusters/east/api", "/clusters/", "/clusters/a/../b", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		cluster, rest, ok := CutViewPath(path)
		if !ok {
			return
		}
		if !strings.HasPrefix(rest, "/") || ViewPath(cluster)+rest != path && ViewPath(cluster) != path {
			t.Errorf("%q is cut into %q and %q", path, cluster, rest)
		}
	})
}

func TestViewsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{
		`[{"cluster":"west","replicas":2},{"cluster":"east","replicas":5,"content":"abc"}]`: "",
		`[{"cluster":"west"},{"cluster":"east","content":"abc"}]`:                           "",
		`[{"cluster":"west"}]`: "fewer than two",
		`[]`:                   "fewer than two",
		`{"west":{}}`:          "parse the views",
		`[{"cluster":"west"},{"cluster":"west","content":"abc"}]`:               "twice",
		`[{"cluster":"West"},{"cluster":"east","content":"abc"}]`:               "not a cluster name",
		`[{"cluster":"west"},{"cluster":"east"}]`:                               "first cluster alone",
		`[{"cluster":"west","content":"a"},{"cluster":"east","content":"abc"}]`: "first cluster alone",
		`[{"cluster":"west","replicas":-1},{"cluster":"east","content":"abc"}]`: "-1 replicas",
	} {
		got, err := ParseViews(text)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", text, err, want)
			}
			continue
		}
		if err != nil || got.String() != text || strings.Join(got.Clusters(), " ") != "east west" {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
		if view, has := got.Of("east"); !has || view.Content != "abc" || got.Index("north") >= 0 {
			t.Errorf("%s has %v for east", text, view)
		}
	}
}
