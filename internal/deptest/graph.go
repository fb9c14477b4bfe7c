package deptest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Graph holds for every package of a module what its files import, tests aside. Packages of the module go by their folders, such as
// "pkg/server", all others by their import paths.
type Graph map[string][]string

// Read parses the packages of the module in the folder root. Folders that Go ignores, and those of other modules, are left out.
func Read(root, module string) (Graph, error) {
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, file, entry.Name())
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		imports, err := importsOf(file, module)
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if found[folder] == nil {
			found[folder] = map[string]bool{}
		}
		for _, imported := range imports {
			found[folder][imported] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the imports of %s: %w", module, err)
	}
	graph := Graph{}
	for folder, imports := range found {
		graph[folder] = slices.Sorted(maps.Keys(imports))
	}
	return graph, nil
}

// enter skips a folder that holds no package of the module.
func enter(root, folder, name string) error {
	if folder == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func importsOf(file, module string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(parsed.Imports))
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", file, spec.Path.Value, err)
		}
		out = append(out, strings.TrimPrefix(imported, module+"/"))
	}
	return out, nil
}

// Rule forbids imports and says why. Patterns are import paths as Graph writes them; one that ends in "/..." stands for the package
// and everything below it.
type Rule struct {
	// From are the packages that the rule is for, except those of Except.
	From, Except []string
	// Forbid is what they must not import, except what Allow names.
	Forbid, Allow []string
	// Through tells that they must not do so by way of other packages of the module either.
	Through bool
	// Why is the reason, for whoever breaks the rule.
	Why string
}

// Violations returns every forbidden import as a sentence, sorted.
func (r Rule) Violations(g Graph) []string {
	var out []string
	for _, from := range r.packages(g) {
		for _, chain := range g.chains(from, r.Through) {
			imported := chain[len(chain)-1]
			if matches(r.Forbid, imported) && !matches(r.Allow, imported) {
				out = append(out, fmt.Sprintf("%s: %s", strings.Join(chain, " imports "), r.Why))
			}
		}
	}
	slices.Sort(out)
	return out
}

// Stale returns the patterns for packages of the module that match none: the package has moved, and the rule guards nothing.
func (r Rule) Stale(g Graph) []string {
	var out []string
	for _, pattern := range slices.Concat(r.From, r.Except) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(g)), func(name string) bool { return matches([]string{pattern}, name) }) {
			out = append(out, pattern)
		}
	}
	return out
}

func (r Rule) packages(g Graph) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if matches(r.From, name) && !matches(r.Except, name) {
			out = append(out, name)
		}
	}
	return out
}

// chains returns for everything that a package imports, also through others of the module if asked to, one shortest way there.
func (g Graph) chains(from string, through bool) [][]string {
	var out [][]string
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		chain := queue[0]
		for _, imported := range g[chain[len(chain)-1]] {
			if seen[imported] {
				continue
			}
			seen[imported] = true
			next := append(slices.Clone(chain), imported)
			out = append(out, next)
			if through {
				queue = append(queue, next)
			}
		}
	}
	return out
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		below, wide := strings.CutSuffix(pattern, "/...")
		return name == below || wide && strings.HasPrefix(name, path.Clean(below)+"/")
	})
}
