package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/manifold-dev/manifold"
	root   = "../.."
)

// placementRooms are the pure rooms of placement, each with what it may import of the others. The arrows run one way, from those that decide
// to the values and words that all talk in.
var placementRooms = map[string][]string{
	"pkg/placement/words":    {},
	"pkg/placement":          {"words"},
	"pkg/placement/portion":  {"."},
	"pkg/placement/move":     {"."},
	"pkg/placement/handmade": {"."},
	"pkg/placement/rules":    {".", "words"},
	"pkg/placement/stuck":    {".", "words", "rules"},
	"pkg/placement/score":    {".", "rules"},
	"pkg/placement/divide":   {".", "words", "portion", "rules", "score"},
	"pkg/placement/ordinals": {".", "words", "portion", "rules", "score", "divide"},
	"pkg/placement/decide":   {".", "words", "rules", "stuck", "score", "divide", "ordinals"},
	"pkg/placement/preempt":  {".", "words", "rules", "decide"},
	"pkg/placement/remedy":   {".", "words", "rules", "handmade"},
	"pkg/placement/build":    {"."},
}

var (
	pure        = append([]string{"pkg/identity", "pkg/mirror", "pkg/projection", "pkg/summary"}, slices.Sorted(maps.Keys(placementRooms))...)
	controllers = []string{"pkg/clusters/...", "pkg/custom/...", "pkg/placement/...", "pkg/records/...", "pkg/summary/...", "pkg/syncer/..."}
	server      = []string{"pkg/admission/...", "pkg/registry/...", "pkg/server/..."}
)

var rules = map[string]Rule{
	"only the server builds on Kubernetes' internals": {
		From:   []string{"apis/...", "cmd/...", "config/...", "e2e/...", "generated/...", "internal/...", "pkg/..."},
		Except: []string{"pkg/server/..."},
		Forbid: []string{"k8s.io/kubernetes/..."},
		Why:    "they change with every release, and whoever imports them has to be changed too; pkg/server is the one place for that",
	},
	"pure packages reach nothing outside": {
		From:    pure,
		Forbid:  []string{"k8s.io/client-go/...", "k8s.io/apiserver/...", "k8s.io/utils/clock/...", "net/...", "os/...", "context", "generated/..."},
		Allow:   []string{"net/netip"}, // addresses as values
		Through: true,
		Why:     "what they return must depend on their arguments alone, so that it can be tested, repeated and explained",
	},
	"pure packages are asked by controllers, not the other way round": {
		From:    pure,
		Forbid:  []string{"pkg/..."},
		Allow:   pure,
		Through: true,
		Why:     "the arrows run from the controllers to the pure packages",
	},
	"the API types know nothing of what works with them": {
		From:    []string{"apis/..."},
		Forbid:  []string{"cmd/...", "config/...", "generated/...", "hack/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Through: true,
		Why:     "others import the API types to build clients, and take on everything that these import",
	},
	"generated clients know the API types alone": {
		From:    []string{"generated/..."},
		Forbid:  []string{"cmd/...", "config/...", "hack/...", "pkg/..."},
		Through: true,
		Why:     "others import the clients, and take on everything that these import",
	},
	"controllers know nothing of the server and the commands": {
		From:    controllers,
		Forbid:  append([]string{"cmd/...", "pkg/cli/...", "k8s.io/apiserver/..."}, server...),
		Allow:   []string{"k8s.io/apiserver/pkg/authentication/serviceaccount"}, // how ServiceAccounts are named
		Through: true,
		Why:     "the server assembles the controllers; one that asks the server back cannot run or be tested without it",
	},
	"what the loops of built-in and of custom kinds share knows neither": {
		From:    []string{"pkg/syncer/copies", "pkg/syncer/steps", "pkg/syncer/writer"},
		Forbid:  []string{"pkg/custom/...", "pkg/syncer"},
		Through: true,
		Why:     "one path for all kinds; what only one of them needs belongs to its own loop",
	},
	"what decides and what makes statuses share by what lies below them": {
		From:   []string{"pkg/custom/...", "pkg/placement/controller", "pkg/records", "pkg/summary/controller", "pkg/syncer/..."},
		Forbid: []string{"pkg/custom/...", "pkg/placement/controller", "pkg/summary/controller"},
		Why:    "a controller that imports another cannot be run or tested without it; what both need belongs to a package of its own, such as pkg/records",
	},
	"the server knows nothing of the commands": {
		From:    server,
		Forbid:  []string{"cmd/...", "pkg/cli/..."},
		Through: true,
		Why:     "commands start the server; a server that prints or asks cannot be embedded",
	},
	"commands talk to the API, only start brings the server along": {
		From:    []string{"pkg/cli/..."},
		Except:  []string{"pkg/cli", "pkg/cli/start"},
		Forbid:  server,
		Through: true,
		Why:     "a command must work against a logical cluster elsewhere, and what it shares with the server belongs to a package of its own",
	},
	"the command tree starts the server by its command alone": {
		From:   []string{"pkg/cli"},
		Forbid: server,
		Why:    "what it takes to start a server belongs to pkg/cli/start",
	},
	"the main package holds nothing but the command tree": {
		From:   []string{"cmd/..."},
		Forbid: []string{"apis/...", "config/...", "generated/...", "pkg/..."},
		Allow:  []string{"pkg/cli"},
		Why:    "code in a main package cannot be tested or used by others",
	},
	"what is inside of a decision is left to placement": {
		From:   []string{"cmd/...", "e2e/...", "hack/...", "pkg/..."},
		Except: []string{"pkg/placement/..."},
		Forbid: []string{"pkg/placement/rules", "pkg/placement/stuck", "pkg/placement/score", "pkg/placement/divide", "pkg/placement/ordinals",
			"pkg/placement/preempt"},
		Why: "a part of a decision that is made elsewhere is another decision; ask the engine, or pkg/placement/decide",
	},
	"who gathers for decisions leaves how they are made to them": {
		From:   []string{"pkg/placement/controller", "pkg/placement/engine"},
		Forbid: []string{"pkg/placement/score", "pkg/placement/divide", "pkg/placement/ordinals"},
		Why:    "they are stages of pkg/placement/decide, which mean nothing alone",
	},
	"the product needs nothing of the tools and tests": {
		From:   []string{"apis/...", "cmd/...", "config/...", "generated/...", "pkg/..."},
		Except: []string{"generated/clientset/versioned/fake/...", "generated/clientset/versioned/typed/manifold/v1alpha1/fake"},
		Forbid: []string{"hack/...", "e2e/...", "internal/deptest", "pkg/placement/build", "testing/...", "k8s.io/client-go/testing/...", "k8s.io/client-go/kubernetes/fake",
			"k8s.io/utils/clock/testing", "generated/clientset/versioned/fake/..."},
		Why: "what is for tests does not belong into the binary",
	},
}

func TestImportsFollowTheRules(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, violation := range rule.Violations(graph) {
				t.Error(violation)
			}
			for _, pattern := range rule.Stale(graph) {
				t.Errorf("no package matches %q: the rule guards nothing there", pattern)
			}
		})
	}
}

// Whoever adds a room of placement says here where it belongs.
func TestTheArrowsBetweenTheRoomsOfPlacementRunOneWay(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	outside := []string{"pkg/placement/controller", "pkg/placement/engine"}
	for folder, imports := range graph {
		if !matches([]string{"pkg/placement/..."}, folder) || slices.Contains(outside, folder) {
			continue
		}
		below, known := placementRooms[folder]
		if !known {
			t.Errorf("%s is a room of placement that placementRooms does not name", folder)
		}
		for _, imported := range imports {
			if matches([]string{"pkg/placement/..."}, imported) && !slices.ContainsFunc(below, func(room string) bool { return path.Join("pkg/placement", room) == imported }) {
				t.Errorf("%s imports %s", folder, imported)
			}
		}
	}
	for folder := range placementRooms {
		if graph[folder] == nil {
			t.Errorf("there is no %s", folder)
		}
	}
}

// A package that is named after nothing in particular collects everything.
func TestPackagesAreNamedAfterWhatTheyHold(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for folder := range graph {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}, path.Base(folder)) {
			t.Errorf("package %s has a name that says nothing", folder)
		}
	}
}

// pureImports are what pure packages may import beside each other and the standard library: types, and functions of them.
var pureImports = []string{
	"apis/...", "internal/text", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/component-helpers/...", "k8s.io/utils/...",
	"sigs.k8s.io/structured-merge-diff/...",
}

// A library that nobody has thought about may bring a client, a cache or a clock along, which every test would have to fake.
func TestPurePackagesImportWhatIsKnownToBePure(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range pure {
		if len(graph[folder]) == 0 {
			t.Fatalf("%s imports nothing: it is no package", folder)
		}
		for _, imported := range graph[folder] {
			first, _, _ := strings.Cut(imported, "/")
			_, ours := graph[imported]
			standard := !ours && !strings.Contains(first, ".")
			if !standard && !matches(pureImports, imported) && !slices.Contains(pure, imported) || standard && matches([]string{"sync/...", "math/rand/..."}, imported) {
				t.Errorf("%s imports %s", folder, imported)
			}
		}
	}
}

// A pure function takes the time as an argument.
func TestPurePackagesReadNoClock(t *testing.T) {
	for _, folder := range pure {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Fatalf("%s has no files", folder)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clockCalls(t, file, text) {
				t.Errorf("%s calls %s: take the time as an argument", file, call)
			}
		}
	}
}

func TestClockCallsAreFound(t *testing.T) {
	text := `package p
import "time"
var a = time.Second
func b() time.Duration { return time.Since(time.Now()) }
`
	got := clockCalls(t, "p.go", []byte(text))
	if want := []string{"time.Now", "time.Since"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

// clockCalls returns what a file uses of package time that depends on the present, sorted.
func clockCalls(t *testing.T, name string, text []byte) []string {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	present := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"}
	found := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && (of.Name == "time" || of.Name == "metav1") && slices.Contains(present, selector.Sel.Name) {
			found[of.Name+"."+selector.Sel.Name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}
