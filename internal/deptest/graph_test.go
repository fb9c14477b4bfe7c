package deptest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestGraphHoldsWhatIsImportedOutsideOfTests(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module example.org/shop\n",
		"cart/cart.go":        "package cart\nimport (\n\t\"fmt\"\n\t_ \"example.org/shop/money\"\n)\n",
		"cart/more.go":        "package cart\nimport \"fmt\"\n",
		"cart/cart_test.go":   "package cart\nimport \"testing\"\n",
		"money/money.go":      "package money\n",
		"money/testdata/x.go": "package x\nimport \"os\"\n",
		"_output/y.go":        "package y\nimport \"os\"\n",
		"tools/go.mod":        "module example.org/tools\n",
		"tools/tools.go":      "package tools\nimport \"os\"\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(root, "example.org/shop")
	if err != nil {
		t.Fatal(err)
	}
	want := Graph{"cart": {"fmt", "money"}, "money": {}}
	for name, imports := range want {
		if len(got[name]) != len(imports) || len(imports) > 0 && !reflect.DeepEqual(got[name], imports) {
			t.Errorf("%s imports %v, want %v", name, got[name], imports)
		}
	}
	if len(got) != len(want) {
		t.Errorf("packages %v, want those of %v", got, want)
	}
}

func TestRuleReportsForbiddenImports(t *testing.T) {
	graph := Graph{
		"cmd/shop":    {"pkg/cart", "pkg/server"},
		"pkg/cart":    {"fmt", "pkg/money"},
		"pkg/money":   {"net/http"},
		"pkg/server":  {"net", "pkg/servers"},
		"pkg/servers": {},
	}
	for name, test := range map[string]struct {
		rule  Rule
		want  []string
		stale []string
	}{
		"a direct import": {
			rule: Rule{From: []string{"pkg/..."}, Forbid: []string{"net/http"}, Why: "no network"},
			want: []string{"pkg/money imports net/http: no network"},
		},
		"an import through another package, with the way there": {
			rule: Rule{From: []string{"pkg/cart"}, Forbid: []string{"net/..."}, Through: true, Why: "no network"},
			want: []string{"pkg/cart imports pkg/money imports net/http: no network"},
		},
		"no import through another package unless asked for": {
			rule: Rule{From: []string{"pkg/cart"}, Forbid: []string{"net/..."}, Why: "no network"},
		},
		"nothing of a package that is excepted": {
			rule: Rule{From: []string{"pkg/..."}, Except: []string{"pkg/money"}, Forbid: []string{"net/http"}, Why: "no network"},
		},
		"nothing that is allowed": {
			rule: Rule{From: []string{"pkg/..."}, Forbid: []string{"net/..."}, Allow: []string{"net/http", "net"}, Why: "no network"},
		},
		"a package, not others whose names begin alike": {
			rule: Rule{From: []string{"cmd/...", "pkg/..."}, Forbid: []string{"pkg/server/..."}, Why: "not here"},
			want: []string{"cmd/shop imports pkg/server: not here"},
		},
		"patterns that match nothing": {
			rule:  Rule{From: []string{"pkg/cart", "pkg/gone"}, Except: []string{"pkg/moved/..."}},
			stale: []string{"pkg/gone", "pkg/moved/..."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.rule.Violations(graph); !reflect.DeepEqual(got, test.want) {
				t.Errorf("violations %q, want %q", got, test.want)
			}
			if got := test.rule.Stale(graph); !reflect.DeepEqual(got, test.stale) {
				t.Errorf("stale patterns %q, want %q", got, test.stale)
			}
		})
	}
}
