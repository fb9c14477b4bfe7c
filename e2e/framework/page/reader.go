package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// looking are the beginnings of commands that change nothing, so that a reader may repeat them until they print what the page says.
var looking = []string{
	"manifold app get ", "manifold app history ", "manifold app list", "manifold app plan ", "manifold release get ", "manifold pipeline get ", "manifold pipeline list",
	"manifold versions ", "kubectl get ",
}

// repeatable reports whether all commands of a step change nothing.
func (s Step) repeatable() bool {
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

// Reader does what pages say, in a folder of its own.
type Reader struct {
	*framework.Scenario
	// Env is what its commands find in their environment.
	Env []string
	// Names are what stands on a page and what it is called here, in turn.
	Names []string
	// Elsewhere is done by others, each before the commands that begin so.
	Elsewhere map[string]func()

	dir string
}

// NewReader returns somebody who has what pages ask for: a logical cluster with its clusters, and the programs.
func NewReader(s *framework.Scenario) *Reader {
	s.Helper()
	root, err := tools.Root()
	if err != nil {
		s.Fatal(err)
	}
	// Pages choose another namespace in it.
	kubeconfig, err := os.ReadFile(s.Logical.Kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	own := filepath.Join(s.TempDir(), "admin.kubeconfig")
	if err := os.WriteFile(own, kubeconfig, 0o600); err != nil {
		s.Fatal(err)
	}
	programs := filepath.Dir(s.Environment.Manifold.Binary()) + string(os.PathListSeparator) + tools.BinDir(root)
	return &Reader{Scenario: s, dir: s.TempDir(), Elsewhere: map[string]func(){}, Env: append(os.Environ(),
		"HOME="+s.TempDir(), "KUBECONFIG="+own, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"),
		// Whose commits they are, whatever the machine's git says.
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")}
}

// Follow does all that a page of the docs says, such as "delivery/getting-started.md".
func (r *Reader) Follow(name string) {
	r.Helper()
	root, err := tools.Root()
	if err != nil {
		r.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		r.Fatal(err)
	}
	steps, err := Read(string(page))
	if err != nil || len(steps) == 0 {
		r.Fatalf("docs/%s has %d steps: %v", name, len(steps), err)
	}
	unused := maps.Clone(r.Elsewhere)
	for _, step := range steps {
		for begin, others := range r.Elsewhere {
			if step.File == "" && strings.HasPrefix(step.Text, begin) {
				delete(unused, begin)
				others()
			}
		}
		r.do(step)
	}
	for begin := range unused {
		r.Errorf("docs/%s has no commands that begin with %q", name, begin)
	}
}

// File returns a file that a page had written, as it stands there.
func (r *Reader) File(name string) []byte {
	r.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return content
}

// Git has the commands of git configured: each a key and a value.
func (r *Reader) Git(configuration ...string) {
	for i := 0; i < len(configuration); i += 2 {
		r.Env = append(r.Env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, configuration[i]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, configuration[i+1]))
	}
	r.Env = append(r.Env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(configuration)/2))
}

// here returns a text of the page with the names of here.
func (r *Reader) here(text string) string { return strings.NewReplacer(r.Names...).Replace(text) }

func (r *Reader) do(s Step) {
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
func (r *Reader) run(s Step) {
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

func (r *Reader) try(s Step) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", r.here(s.Text))
	command.Dir, command.Env = r.dir, r.Env
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
func (r *Reader) learn(s Step, printed string) {
	page, here := made.FindStringSubmatch(strings.Join(s.Prints, "\n")), made.FindStringSubmatch(printed)
	if page != nil && here != nil {
		r.Names = append(r.Names, page[1], here[1])
	}
}
