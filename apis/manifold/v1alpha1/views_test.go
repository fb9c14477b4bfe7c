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
