package placement

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The package stays pure: whoever imports a client, a lister or a clock here makes decisions that cannot be repeated.
func TestImportsStayPure(t *testing.T) {
	allowed := []string{
		"github.com/manifold-dev/manifold/apis/manifold/v1alpha1", "k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/component-helpers/",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			pure := !strings.Contains(strings.Split(path, "/")[0], ".") && !strings.HasPrefix(path, "net") && path != "os"
			for _, prefix := range allowed {
				pure = pure || strings.HasPrefix(path, prefix)
			}
			if !pure {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
