// Package page does what pages of the documentation tell their readers to do, so that what they say stays true.
package page

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Step is something on a page that a reader does: a file to write, or commands with what the page says that they print.
type Step struct {
	// Line is where on the page it begins.
	Line int
	// File is the path of a file, whose content is Text. It is "" for commands.
	File string
	Text string
	// Prints are lines of what the commands print, in their order. Others may stand between them.
	Prints []string
}

// Read returns what a reader of a page does, in its order. A block of "yaml" begins with the file's path in a comment, one of "bash" holds
// commands, and one of "text" behind it is what they print. Other blocks are refused, as nothing would try them.
func Read(page string) ([]Step, error) {
	var steps []Step
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

func addBlock(steps []Step, kind string, line int, block []string) ([]Step, error) {
	text := strings.Join(block, "\n") + "\n"
	switch kind {
	case "bash":
		return append(steps, Step{Line: line, Text: text}), nil
	case "yaml":
		file, named := strings.CutPrefix(block[0], "# ")
		if !named || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("a block of yaml begins with %q, want a comment with the path of the file", block[0])
		}
		return append(steps, Step{Line: line, File: file, Text: text}), nil
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
