package delivery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// step is something on a page that a reader does: a file to write, or commands with what the page says that they print.
type step struct {
	// Line is where on the page it begins.
	Line int
	// File is the path of a file, whose content is Text. It is "" for commands.
	File string
	Text string
	// Prints are lines of what the commands print, in their order. Others may stand between them.
	Prints []string
}

// readPage returns what a reader of a page does, in its order. A block of "yaml" begins with the file's path in a comment, one of "bash" holds
// commands, and one of "text" behind it is what they print. Other blocks are refused, as nothing would try them.
func readPage(page string) ([]step, error) {
	var steps []step
	kind, begin, block := "", 0, []string(nil)
	for i, line := range strings.Split(page, "\n") {
		fence, fenced := strings.CutPrefix(line, "```")
		switch {
		case !fenced && kind != "":
			block = append(block, line)
		case !fenced:
		case kind == "":
			kind, begin, block = fence, i+1, nil
			if fence == "" {
				return nil, fmt.Errorf("line %d: a block of no language is tried by nobody", i+1)
			}
		default:
			var err error
			if steps, err = addBlock(steps, kind, begin, block); err != nil {
				return nil, fmt.Errorf("line %d: %w", begin, err)
			}
			kind = ""
		}
	}
	if kind != "" {
		return nil, fmt.Errorf("line %d: the block does not end", begin)
	}
	return steps, nil
}

func addBlock(steps []step, kind string, line int, block []string) ([]step, error) {
	text := strings.Join(block, "\n") + "\n"
	switch kind {
	case "bash":
		return append(steps, step{Line: line, Text: text}), nil
	case "yaml":
		file, named := strings.CutPrefix(block[0], "# ")
		if !named || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("a block of yaml begins with %q, want a comment with the path of the file", block[0])
		}
		return append(steps, step{Line: line, File: file, Text: text}), nil
	case "text":
		if len(steps) == 0 || steps[len(steps)-1].File != "" || steps[len(steps)-1].Prints != nil {
			return nil, fmt.Errorf("no commands stand before what is printed")
		}
		for _, line := range block {
			if strings.TrimSpace(line) != "" {
				steps[len(steps)-1].Prints = append(steps[len(steps)-1].Prints, line)
			}
		}
		return steps, nil
	}
	return nil, fmt.Errorf("a block of %q is tried by nobody", kind)
}

// looking are the beginnings of commands that change nothing, so that a reader may repeat them until they print what the page says.
var looking = []string{"manifold app get ", "manifold app history ", "manifold app list", "manifold app plan ", "manifold release get ", "kubectl get "}

// repeatable reports whether all commands of a step change nothing.
func (s step) repeatable() bool {
	for line := range strings.Lines(s.Text) {
		if !slices.ContainsFunc(looking, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			return false
		}
	}
	return true
}

// varying are what is another each time: times, and the hashes of commits.
var varying = regexp.MustCompile(`\b((\d+(ms|s|m|h|d))+|[0-9a-f]{12})\b`)

// words brings a line into the form in which lines are compared: without what varies, whatever the white space.
func words(line string) string {
	return strings.Join(strings.Fields(varying.ReplaceAllString(line, "_")), " ")
}

// missing returns the first of the lines that is not printed behind those before it, "" if all are.
func missing(want []string, printed string) string {
	lines := strings.Split(printed, "\n")
	for _, line := range want {
		at := slices.IndexFunc(lines, func(printed string) bool { return words(printed) == words(line) })
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}
	return ""
}

// reader does what a page says, in a folder of its own.
type reader struct {
	*framework.Scenario
	dir string
	env []string
	// names are what stands on the page and what it is called here, in turn.
	names []string
}

// here returns a text of the page with the names of here.
func (r *reader) here(text string) string { return strings.NewReplacer(r.names...).Replace(text) }

func (r *reader) do(s step) {
	r.Helper()
	if s.File == "" {
		r.run(s)
		return
	}
	file := filepath.Join(r.dir, s.File)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(r.here(s.Text)), 0o600); err != nil {
		r.Fatal(err)
	}
}

// patience is how long a step may take. Releases wait for pods, one cluster after the other.
const patience = 4 * time.Minute

// run runs commands until they print what they should, once if they change something. If they print anything else, the rest of the page is tried all
// the same, and not if they fail.
func (r *reader) run(s step) {
	r.Helper()
	const interval = 200 * time.Millisecond
	var last error
	_ = wait.PollUntilContextTimeout(r.Context(), interval, framework.Deadline, true, func(context.Context) (bool, error) { // last says more
		last = r.try(s)
		return last == nil || !s.repeatable(), nil
	})
	var differs *unexpected
	switch {
	case last == nil:
	case errors.As(last, &differs):
		r.Errorf("line %d: %s%v", s.Line, s.Text, last)
	default:
		r.Fatalf("line %d: %s%v", s.Line, s.Text, last)
	}
}

// unexpected says that commands do not print what they should.
type unexpected struct{ line, printed string }

func (u *unexpected) Error() string {
	return fmt.Sprintf("it does not print %q:\n%s", u.line, u.printed)
}

func (r *reader) try(s step) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", r.here(s.Text))
	command.Dir, command.Env = r.dir, r.env
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	r.learn(s, string(out))
	want := make([]string, len(s.Prints))
	for i, line := range s.Prints {
		want[i] = r.here(line)
	}
	if line := missing(want, string(out)); line != "" {
		return &unexpected{line, string(out)}
	}
	r.Logf("line %d: %s%s", s.Line, s.Text, out)
	return nil
}

// made is how a command tells of a release that it has made.
var made = regexp.MustCompile(`(?m)^release/(\S+) created:`)

// learn takes the name of a release from what was printed, for the one on the page.
func (r *reader) learn(s step, printed string) {
	page, here := made.FindStringSubmatch(strings.Join(s.Prints, "\n")), made.FindStringSubmatch(printed)
	if page != nil && here != nil {
		r.names = append(r.names, page[1], here[1])
	}
}

func TestPagesAreReadAsTheyAreDone(t *testing.T) {
	for name, test := range map[string]struct {
		page string
		want []step
		err  string
	}{
		"files, commands and what they print": {
			page: "# A page\n\n```yaml\n# a/b.yaml\nx: 1\n```\ntext\n```bash\necho a\necho b\n```\n\n```text\na\n\nb\n```\n```bash\ntrue\n```\n",
			want: []step{{Line: 3, File: "a/b.yaml", Text: "# a/b.yaml\nx: 1\n"}, {Line: 8, Text: "echo a\necho b\n", Prints: []string{"a", "b"}},
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
			got, err := readPage(test.page)
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
		if got := (step{Text: commands}).repeatable(); got != want {
			t.Errorf("%q may be repeated: %t, want %t", commands, got, want)
		}
	}
}
