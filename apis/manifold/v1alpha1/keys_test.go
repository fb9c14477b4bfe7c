package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestKeysAreAll reads the constants of this package. Whatever is tried with every key in tests is tried with a new one too.
func TestKeysAreAll(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if !strings.HasPrefix(name.Name, "Annotation") && !strings.HasPrefix(name.Name, "Label") || i >= len(spec.Values) {
					continue
				}
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if !ok {
					continue
				}
				if value, err := strconv.Unquote(literal.Value); err != nil || !slices.Contains(Keys(), value) {
					t.Errorf("Keys does not have %s, which is %s (%v)", name.Name, literal.Value, err)
				}
				found++
			}
			return true
		})
	}
	if keys := Keys(); found < len(keys) || !slices.IsSorted(keys) {
		t.Errorf("%d constants are found, Keys are %v", found, keys)
	}
}
