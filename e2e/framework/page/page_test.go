package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPagesAreReadAsTheyAreDone(t *testing.T) {
	for name, test := range map[string]struct {
		page string
		want []Step
		err  string
	}{
		"files, commands and what they print": {
			page: "# A page\n\n```yaml\n# a/b.yaml\nx: 1\n```\ntext\n```bash\necho a\necho b\n```\n\n```text\na\n\nb\n```\n```bash\ntrue\n```\n",
			want: []Step{{Line: 3, File: "a/b.yaml", Text: "# a/b.yaml\nx: 1\n"}, {Line: 8, Text: "echo a\necho b\n", Prints: []string{"a", "b"}},
				{Line: 18, Text: "true\n"}},
		},
		"a block of no language":          {page: "```\nrm\n```", err: "line 1: a block of no language is tried by nobody"},
		"a block of an unknown language":  {page: "```sh\nrm\n```", err: `line 1: a block of "sh" is tried by nobody`},
		"a file without a path":           {page: "```yaml\nx: 1\n```", err: `begins with "x: 1", want a comment`},
		"a file outside of the folder":    {page: "```yaml\n# ../x\n```", err: `begins with "# ../x", want a comment`},
		"what no command prints":          {page: "\n```text\nx\n```", err: "line 2: no commands stand before"},
		"a block that does not end":       {page: "```bash\nx", err: "line 1: the block does not end"},
		"what is printed, a second time":  {page: "```bash\nx\n```\n```text\nx\n```\n```text\ny\n```", err: "line 7: no commands stand before"},
		"a page on which nothing is done": {page: "words"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(test.page)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatAPageSaysIsPrintedIsComparedLineByLine(t *testing.T) {
	const printed = "NAME  AGE\nweb-v2   3m12s  0123456789ab\nweb-v1 4s fedcba987654\n"
	for name, test := range map[string]struct {
		want    []string
		missing string
	}{
		"times, commits and white space are not compared": {want: []string{"NAME AGE", "web-v2  40s  aaaaaaaaaaaa", "web-v1  5d   bbbbbbbbbbbb"}},
		"lines may be left out":                           {want: []string{"web-v1 4s fedcba987654"}},
		"another order is not what the page says":         {want: []string{"web-v1 4s fedcba987654", "NAME AGE"}, missing: "NAME AGE"},
		"a part of a line is not the line":                {want: []string{"web-v2"}, missing: "web-v2"},
		"nothing is asked for":                            {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missing(test.want, printed); got != test.missing {
				t.Errorf("missing is %q, want %q", got, test.missing)
			}
		})
	}
}

func TestOnlyCommandsThatChangeNothingAreRepeated(t *testing.T) {
	for commands, want := range map[string]bool{
		"manifold app get web\n":                                  true,
		"kubectl get deployments\nmanifold release get web-x2f\n": true,
		"manifold app sync web\n":                                 false,
		"manifold app get web\nmanifold app sync web\n":           false,
	} {
		if got := (Step{Text: commands}).repeatable(); got != want {
			t.Errorf("%q may be repeated: %t, want %t", commands, got, want)
		}
	}
}
