// Command packages draws which package imports which into a page of documentation, as a Mermaid graph between two markers. The packages of
// the product are grouped to rooms, such as pkg/server with everything below it, and only those arrows are drawn that do not follow from
// others. Equal imports give an equal page.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const (
	begin = "<!-- packages: written by make generate -->"
	end   = "<!-- packages end -->"
)

// product are the folders whose packages are drawn. Tools and tests are left out: nothing of the product imports them.
var product = []string{"./apis/...", "./cmd/...", "./config/...", "./generated/...", "./internal/...", "./pkg/..."}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packages PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "draw the packages into %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(page string) error {
	imports, err := list()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	next, err := replace(text, imports.rooms().reduced().mermaid())
	if err != nil {
		return err
	}
	return os.WriteFile(page, next, 0o644)
}

// list asks the go command for the packages of the product and what they import of one another. Packages go by their folders.
func list() (graph, error) {
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Module"}, product...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	imports := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var found struct {
			ImportPath string
			Imports    []string
			Module     struct{ Path string }
		}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return imports, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		prefix := found.Module.Path + "/"
		from := strings.TrimPrefix(found.ImportPath, prefix)
		imports.add(from)
		for _, imported := range found.Imports {
			if to, ours := strings.CutPrefix(imported, prefix); ours {
				imports.add(from, to)
			}
		}
	}
}

// replace returns the page with the picture between the markers.
func replace(page []byte, picture string) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, ends := bytes.Cut(rest, []byte(end))
	if !found || !ends {
		return nil, fmt.Errorf("the page has to have a line %q and then a line %q", begin, end)
	}
	return fmt.Appendf(nil, "%s%s\n%s%s%s", before, begin, picture, end, after), nil
}
