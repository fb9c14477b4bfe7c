package deptest

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	namedFile = regexp.MustCompile("`([\\w/]+\\.go)`")
	test      = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestTheTestsThatTheDocsNameExist keeps the threat model from promising what nobody looks at.
func TestTheTestsThatTheDocsNameExist(t *testing.T) {
	there := map[string]bool{}
	walk(t, func(file string) error {
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(file)
		for _, match := range test.FindAllSubmatch(content, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	for page, name := range namedInDocs(t, namedTest) {
		if !there[name] {
			t.Errorf("%s names %s, which there is not", page, name)
		}
	}
}

// TestTheFilesThatTheDocsNameExist notices that a file has moved which the docs tell about.
func TestTheFilesThatTheDocsNameExist(t *testing.T) {
	var there []string
	walk(t, func(file string) error {
		there = append(there, filepath.ToSlash(file))
		return nil
	})
	for page, name := range namedInDocs(t, namedFile) {
		if !slices.ContainsFunc(there, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
			t.Errorf("%s names %s, which there is not", page, name)
		}
	}
}

// walk hands on the files of the module.
func walk(t *testing.T, visit func(file string) error) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, file, entry.Name())
		}
		return visit(file)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// namedInDocs returns what pages of the docs name by a pattern.
func namedInDocs(t *testing.T, pattern *regexp.Regexp) iter.Seq2[string, string] {
	t.Helper()
	var pages []string
	for _, folder := range []string{"docs", "docs/delivery", "docs/designs"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages are found in %s: %v", folder, err)
		}
		pages = append(pages, found...)
	}
	return func(yield func(page, name string) bool) {
		for _, page := range pages {
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range pattern.FindAllSubmatch(content, -1) {
				name, err := filepath.Rel(filepath.Join(root, "docs"), page)
				if err != nil {
					t.Fatal(err)
				}
				if !yield(filepath.ToSlash(name), string(match[1])) {
					return
				}
			}
		}
	}
}
