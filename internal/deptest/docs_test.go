package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	test      = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestTheTestsThatTheDocsNameExist keeps the threat model from promising what nobody looks at.
func TestTheTestsThatTheDocsNameExist(t *testing.T) {
	const root = "../.."
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, file, entry.Name())
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(file)
		for _, match := range test.FindAllSubmatch(content, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no docs are found: %v", err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTest.FindAllSubmatch(content, -1) {
			if name := string(match[1]); !there[name] {
				t.Errorf("%s names %s, which there is not", filepath.Base(page), name)
			}
		}
	}
}
