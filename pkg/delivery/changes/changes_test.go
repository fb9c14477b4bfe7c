package changes

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestWhatAPatternMatches(t *testing.T) {
	for name, test := range map[string]struct {
		pattern, path string
		want          bool
	}{
		"a file by its name":                       {"README.md", "README.md", true},
		"no file of that name further down":        {"README.md", "web/README.md", false},
		"a folder is all that is in it":            {"docs", "docs/a/b", true},
		"a folder with a slash at the end as well": {"docs/", "docs/a/b", true},
		"no other that begins the same":            {"docs", "docs2/a", false},
		"two stars are any number of folders":      {"**/test/*.go", "a/b/test/c.go", true},
		"none is a number of folders too":          {"**/test/*.go", "test/d.go", true},
		"two stars at the end are all below":       {"web/**", "web/a/b", true},
		"but not what is beside":                   {"web/**", "webb/a", false},
		"one star is one folder":                   {"*/a.go", "x/y/a.go", false},
		"a star within a name":                     {"web/*.md", "web/a.md", true},
		"a pattern that is none":                   {"[a", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Matches(test.pattern, test.path); got != test.want {
				t.Errorf("%q matches %q: %t, want %t", test.pattern, test.path, got, test.want)
			}
		})
	}
}

// Patterns and paths are strangers': however many stars there are, the answer comes.
func FuzzMatches(f *testing.F) {
	f.Add(strings.Repeat("**/", 200)+"x", strings.Repeat("a/", 2000))
	f.Add("a/**", "a/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := Matches(pattern, name)
		if strings.ContainsAny(pattern, `*?[\\`) {
			return
		}
		pattern, name = path.Clean(pattern), path.Clean(name)
		if want := name == pattern || strings.HasPrefix(name, pattern+"/"); got != want {
			t.Errorf("%q matches %q: %t", pattern, name, got)
		}
	})
}

func TestWhichChangesCallForARelease(t *testing.T) {
	shared := v1alpha1.Trigger{Paths: []string{"shared/**"}}
	words := v1alpha1.Trigger{Ignores: []string{"**/*.md"}}
	both := v1alpha1.Trigger{Paths: []string{"shared/**"}, Ignores: []string{"**/*.md"}}
	for name, test := range map[string]struct {
		trigger v1alpha1.Trigger
		folder  string
		files   []string
		more    bool
		unknown bool
		want    bool
	}{
		"any, where nobody names files":             {files: []string{"docs/a.txt"}, folder: "web", want: true},
		"any, where it is not known which":          {trigger: shared, unknown: true, want: true},
		"any, where there are more than are listed": {trigger: shared, folder: "web", files: []string{"docs/a.txt"}, more: true, want: true},
		"a file that is named":                      {trigger: shared, folder: "web", files: []string{"docs/a.txt", "shared/base.yaml"}, want: true},
		"a file of the source's own folder":         {trigger: shared, folder: "web", files: []string{"web/east/a.yaml"}, want: true},
		"any, where the source is the whole":        {trigger: shared, files: []string{"docs/a.txt"}, want: true},
		"none that is elsewhere":                    {trigger: shared, folder: "web", files: []string{"docs/a.txt", "webb/a.yaml"}},
		"none that is ignored, also in the folder":  {trigger: words, folder: "web", files: []string{"web/README.md"}},
		"none that is ignored, also if it is named": {trigger: both, folder: "web", files: []string{"shared/README.md"}},
		"another one beside what is ignored":        {trigger: words, folder: "web", files: []string{"web/README.md", "lib/a.yaml"}, want: true},
		"nothing, where no file is another":         {trigger: shared, folder: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			changes := &v1alpha1.RevisionChanges{Since: "web-v1", Files: test.files, More: test.more}
			if test.unknown {
				changes = nil
			}
			if got := Count(changes, test.trigger, test.folder); got != test.want {
				t.Errorf("it calls for one: %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhoGoesByFiles(t *testing.T) {
	stages := func(skip *v1alpha1.SkipOn) v1alpha1.ApplicationSpec {
		return v1alpha1.ApplicationSpec{Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StageSync}, {Name: v1alpha1.StageWait, SkipOn: skip}}}}
	}
	for name, test := range map[string]struct {
		spec v1alpha1.ApplicationSpec
		want bool
	}{
		"nobody who names none":               {},
		"who names files":                     {spec: v1alpha1.ApplicationSpec{Trigger: v1alpha1.Trigger{Paths: []string{"a"}}}, want: true},
		"who ignores some":                    {spec: v1alpha1.ApplicationSpec{Trigger: v1alpha1.Trigger{Ignores: []string{"a"}}}, want: true},
		"who skips a stage by them":           {spec: stages(&v1alpha1.SkipOn{Paths: []string{"a"}}), want: true},
		"nobody who skips by words":           {spec: stages(&v1alpha1.SkipOn{CommitMessagePrefixes: []string{"a"}})},
		"nobody whose stages are not skipped": {spec: stages(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Asked(test.spec); got != test.want {
				t.Errorf("it goes by files: %t, want %t", got, test.want)
			}
		})
	}
}

// revision has files that differ from those of another one; none of the first.
func revision(number, since int64, files ...string) *v1alpha1.ApplicationRevision {
	out := &v1alpha1.ApplicationRevision{Spec: v1alpha1.ApplicationRevisionSpec{Application: "web", Number: number}}
	out.Name = v1alpha1.RevisionName("web", number)
	if since != 0 {
		out.Spec.Changes = &v1alpha1.RevisionChanges{Since: v1alpha1.RevisionName("web", since), Files: files}
	}
	return out
}

func TestTheFilesBetweenRevisions(t *testing.T) {
	more := revision(3, 2, "c")
	more.Spec.Changes.More = true
	for name, test := range map[string]struct {
		revisions []*v1alpha1.ApplicationRevision
		one, two  string
		want      []string
		unknown   bool
	}{
		"of one to the next":                    {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 1, "a")}, one: "web-v1", two: "web-v2", want: []string{"a"}},
		"of several, each once":                 {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 1, "b", "c"), revision(4, 2, "a", "b")}, one: "web-v1", two: "web-v4", want: []string{"a", "b", "c"}},
		"the other way round":                   {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 1, "a")}, one: "web-v2", two: "web-v1", want: []string{"a"}},
		"none from one to itself":               {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0)}, one: "web-v1", two: "web-v1"},
		"unknown, if one between is gone":       {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(3, 2, "a")}, one: "web-v1", two: "web-v3", unknown: true},
		"unknown, if one between does not tell": {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 0), revision(3, 2, "a")}, one: "web-v1", two: "web-v3", unknown: true},
		"unknown, if not all are listed":        {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 1), more}, one: "web-v1", two: "web-v3", unknown: true},
		"unknown, if there is no such revision": {revisions: []*v1alpha1.ApplicationRevision{revision(2, 1, "a")}, one: "web-v1", two: "web-v2", unknown: true},
		"unknown, if they lead past it":         {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 1, "a"), revision(3, 1, "b")}, one: "web-v2", two: "web-v3", unknown: true},
		"unknown, if they lead round":           {revisions: []*v1alpha1.ApplicationRevision{revision(1, 0), revision(2, 2, "a")}, one: "web-v1", two: "web-v2", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := Between(test.revisions, test.one, test.two)
			if known == test.unknown || !slices.Equal(got, test.want) {
				t.Errorf("the files are %v, known: %t; want %v, %t", got, known, test.want, !test.unknown)
			}
		})
	}
}
