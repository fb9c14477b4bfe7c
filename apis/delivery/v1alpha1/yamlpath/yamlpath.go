// Package yamlpath replaces single values of documents, by paths such as $.spec.template.spec.containers[0].image.
package yamlpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json" // it keeps whole numbers whole
	"sigs.k8s.io/yaml"
)

// mostSteps bounds a path.
const mostSteps = 64

// Path leads to one value of a document. It has at least one step.
type Path []Step

// Step is the name of a field or, where Entry is set, the position of an entry of a list.
type Step struct {
	Name  string
	Index int
	Entry bool
}

// String returns the step as it is written.
func (s Step) String() string {
	if s.Entry {
		return "[" + strconv.Itoa(s.Index) + "]"
	}
	return "." + s.Name
}

// Parse reads a path: $ and then, for each step, .NAME or [POSITION]. A name with dots or brackets in it is written with backslashes before them, or
// in quotes, as in .'NAME' and ['NAME'].
func Parse(text string) (Path, error) {
	rest, rooted := strings.CutPrefix(text, "$")
	if !rooted || rest == "" {
		return nil, errors.New("must begin with $., such as $.spec.replicas")
	}
	var out Path
	for rest != "" {
		step, after, err := first(rest)
		if err != nil {
			return nil, err
		}
		if out, rest = append(out, step), after; len(out) > mostSteps {
			return nil, fmt.Errorf("has more than %d steps", mostSteps)
		}
	}
	return out, nil
}

// first reads one step, and returns what comes after it.
func first(text string) (Step, string, error) {
	inside, bracket := strings.CutPrefix(text, "[")
	if !bracket {
		name, is := strings.CutPrefix(text, ".")
		if !is {
			return Step{}, "", fmt.Errorf("has %q where a dot or a bracket is expected", text)
		}
		if strings.HasPrefix(name, "'") {
			return quoted(name)
		}
		return plain(name)
	}
	if strings.HasPrefix(inside, "'") {
		step, rest, err := quoted(inside)
		rest, closed := strings.CutPrefix(rest, "]")
		if err == nil && !closed {
			err = errors.New("has a bracket that is not closed")
		}
		return step, rest, err
	}
	digits, rest, closed := strings.Cut(inside, "]")
	index, err := strconv.ParseUint(digits, 10, 31)
	if !closed || err != nil {
		return Step{}, "", fmt.Errorf("has [%s where the position of one entry is expected, such as [0]", inside)
	}
	return Step{Index: int(index), Entry: true}, rest, nil
}

// quoted reads a name in quotes.
func quoted(text string) (Step, string, error) {
	name, rest, closed := strings.Cut(text[1:], "'")
	if !closed || name == "" {
		return Step{}, "", errors.New("has a name in quotes that is empty or does not end")
	}
	return Step{Name: name}, rest, nil
}

// plain reads a name up to the next dot or bracket that has no backslash before it.
func plain(text string) (Step, string, error) {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			name.WriteByte(text[i])
			continue
		case c == '.' || c == '[':
			return named(name.String(), text[i:])
		default:
			name.WriteByte(c)
		}
	}
	return named(name.String(), "")
}

func named(name, rest string) (Step, string, error) {
	if name == "" || name == "*" {
		return Step{}, "", errors.New("must lead to one value: each dot is followed by the name of a field")
	}
	return Step{Name: name}, rest, nil
}

// Get returns the value that the path leads to.
func (p Path) Get(document any) (any, error) {
	at := document
	for i, step := range p {
		next, has := step.in(at)
		if !has {
			return nil, fmt.Errorf("there is no $%s", Path(p[:i+1]).steps())
		}
		at = next
	}
	return at, nil
}

// Replace gives the field or entry that the path leads to another value. It is to be there.
func (p Path) Replace(document, value any) error {
	if _, err := p.Get(document); err != nil {
		return err
	}
	last := p[len(p)-1]
	parent, err := p[:len(p)-1].Get(document)
	if err != nil {
		return err
	}
	if last.Entry {
		parent.([]any)[last.Index] = value
	} else {
		parent.(map[string]any)[last.Name] = value
	}
	return nil
}

// in returns what a step leads to.
func (s Step) in(parent any) (any, bool) {
	if s.Entry {
		list, is := parent.([]any)
		if !is || s.Index >= len(list) {
			return nil, false
		}
		return list[s.Index], true
	}
	object, _ := parent.(map[string]any)
	value, has := object[s.Name]
	return value, has
}

func (p Path) steps() string {
	var out strings.Builder
	for _, step := range p {
		out.WriteString(step.String())
	}
	return out.String()
}

// Value reads one YAML document.
func Value(text string) (any, error) {
	begun := false
	for line := range strings.Lines(text) {
		if begun && strings.HasPrefix(line, "---") {
			return nil, errors.New("must be one YAML document")
		}
		begun = begun || strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "---")
	}
	content, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("must be YAML: %w", err)
	}
	var out any
	if err := json.Unmarshal(content, &out); err != nil {
		return nil, fmt.Errorf("must be YAML: %w", err)
	}
	return out, nil
}

// Text writes a document as a text was: as JSON, or as YAML.
func Text(document any, was string) (string, error) {
	if first := strings.TrimSpace(was); strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[") {
		content, err := json.Marshal(document)
		return string(content), err
	}
	content, err := yaml.Marshal(document)
	return string(content), err
}
