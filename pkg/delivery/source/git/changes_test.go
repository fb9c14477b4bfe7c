package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTheFilesByWhichCommitsDiffer(t *testing.T) {
	r := newTestRepository(t)
	earlier := r.Commit("first", map[string]string{"web/a.yaml": "a", "web/b.yaml": "b", "web/deep/er/c.yaml": "c", "lib/d.yaml": "d", "same/e.yaml": "e", "turned": "a file"})
	r.Git("rm", "--quiet", "-r", "web/b.yaml", "turned")
	r.Git("mv", "lib/d.yaml", "web/d.yaml")
	r.Git("update-index", "--chmod=+x", "web/a.yaml")
	r.link("same", "link")
	r.Commit("second", map[string]string{"web/deep/er/c.yaml": "changed", "new/f.yaml": "f", "turned/g.yaml": "a folder"})
	client := newTestClient(t, Policy{Files: everywhere}, Limits{})
	now, err := read(t, client, Request{URL: r.FileURL()})
	if err != nil {
		t.Fatal(err)
	}
	before, err := client.Fetch(t.Context(), Request{URL: r.FileURL()}, Revision{Commit: earlier})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	want := []string{"lib/d.yaml", "link", "new/f.yaml", "turned", "turned/g.yaml", "web/b.yaml", "web/d.yaml", "web/deep/er/c.yaml"}
	if got := now.Since(before); !slices.Equal(got.Files, want) || got.More {
		t.Errorf("they differ by %v, want %v", got, want)
	}
	if got := before.Since(now); !slices.Equal(got.Files, want) || got.More {
		t.Errorf("the other way they differ by %v, want %v", got, want)
	}
	if got := now.Since(now); len(got.Files) > 0 || got.More {
		t.Errorf("a commit differs from itself by %v", got)
	}
}

func TestChangesAreBounded(t *testing.T) {
	many, long := map[string]string{}, map[string]string{}
	for i := range mostChanged + 1 {
		many[fmt.Sprintf("many/%d", i)] = "x"
		long[fmt.Sprintf("long/%s/%d", strings.Repeat("x", 200), i)] = "x"
	}
	for name, test := range map[string]struct {
		change func(*repository)
		most   int
	}{
		"too many files":          {func(r *repository) { r.Commit("many", many) }, mostChanged},
		"names that are too long": {func(r *repository) { r.Commit("long", long) }, mostNames / 200},
		"a name that nobody can ask for": {func(r *repository) {
			hash := r.GitReading("x", "hash-object", "-w", "--stdin")
			r.Git("update-index", "--add", "--cacheinfo", "100644,"+hash+",caf\xe9")
			r.Git("commit", "--quiet", "--message", "odd")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRepository(t)
			earlier := r.Commit("first", map[string]string{"a": "a"})
			test.change(r)
			client := newTestClient(t, Policy{Files: everywhere}, Limits{})
			now, err := read(t, client, Request{URL: r.FileURL()})
			if err != nil {
				t.Fatal(err)
			}
			before, err := client.Fetch(t.Context(), Request{URL: r.FileURL()}, Revision{Commit: earlier})
			if err != nil {
				t.Fatal(err)
			}
			defer before.Close()
			if got := now.Since(before); !got.More || len(got.Files) > test.most || test.most > 0 && len(got.Files) == 0 {
				t.Errorf("%d files are listed, and more: %t", len(got.Files), got.More)
			}
		})
	}
}
