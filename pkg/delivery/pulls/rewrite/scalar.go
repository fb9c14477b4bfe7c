package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// span returns where the text of a value begins and ends in the file, without its quotes.
func span(content []byte, n *node) (start, end int, err error) {
	if n.Anchor != "" {
		return 0, 0, errors.New("the value is an anchor, so other places would change with it; write it out there")
	}
	line, offset, ok := lineOf(content, n.Line)
	begin, fits := columnOf(line, n.Column)
	if !ok || !fits {
		return 0, 0, errNotFound
	}
	start = offset + begin
	rest := line[begin:]
	switch n.Style {
	case 0:
		if !bytes.HasPrefix(rest, []byte(n.Value)) || n.Value == "" {
			return 0, 0, errNotFound
		}
		return start, start + len(n.Value), nil
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		quote := byte('\'')
		if n.Style == yaml.DoubleQuotedStyle {
			quote = '"'
		}
		if len(rest) == 0 || rest[0] != quote {
			return 0, 0, errNotFound
		}
		inner := rest[1:]
		if length := bytes.IndexByte(inner, quote); length >= 0 && string(inner[:length]) == n.Value { // so nothing in it is escaped
			return start + 1, start + 1 + length, nil
		}
		return 0, 0, errNotFound
	}
	return 0, 0, errors.New("the value is no plain or quoted one of one line")
}

var errNotFound = errors.New("the value cannot be changed in its place; write it in one line, without escapes and tags")

// lineOf returns a line, counted from 1, and where it begins. Line breaks are those of files: what else YAML takes for one, verify notices.
func lineOf(content []byte, number int) (line []byte, offset int, ok bool) {
	for ; number > 1; number-- {
		length := bytes.IndexByte(content[offset:], '\n')
		if length < 0 {
			return nil, 0, false
		}
		offset += length + 1
	}
	line, _, _ = bytes.Cut(content[offset:], []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), offset, true
}

// columnOf returns where a column, which counts characters from 1, is in a line.
func columnOf(line []byte, column int) (offset int, ok bool) {
	for ; column > 1; column-- {
		if offset >= len(line) {
			return 0, false
		}
		_, size := utf8.DecodeRune(line[offset:])
		offset += size
	}
	return offset, offset < len(line)
}

// written is a value in the style of the one that it takes the place of. A text that would be read as something else is quoted.
func written(n *node, value string) []byte {
	if n.Style == 0 && !plain(value) {
		return []byte(`"` + value + `"`)
	}
	return []byte(value)
}

var (
	// older are texts that earlier versions of YAML read as numbers: in base 60, and with underscores.
	older = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?$`)
	// truths are those that they read as true and false.
	truths = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// plain reports whether a value is a text without quotes, too.
func plain(value string) bool {
	var read yaml.Node
	if err := yaml.Unmarshal([]byte(value), &read); err != nil || len(read.Content) != 1 {
		return false
	}
	return read.Content[0].Kind == yaml.ScalarNode && read.Content[0].ShortTag() == "!!str" && read.Content[0].Value == value &&
		!older.MatchString(value) && !truths.MatchString(value)
}

// verify holds the file that was changed against the one before: all nodes are the same, with their comments, but those that were to change, by their
// indexes. How a value is found in a text can be wrong about what YAML means; this is not.
func verify(before, after []byte, wanted map[int]string) error {
	was, err := parse("", before)
	if err != nil {
		return err
	}
	is, err := parse("", after)
	if err != nil {
		return fmt.Errorf("it would not be YAML any more: %s", shown(err.Error()))
	}
	then, now := flat(was), flat(is)
	if len(then) != len(now) {
		return errNotFound
	}
	for i := range then {
		a, b := *then[i], *now[i]
		if want, changes := wanted[i]; changes {
			if b.Kind != yaml.ScalarNode || b.Value != want || b.Value != a.Value && b.ShortTag() != "!!str" {
				return errNotFound
			}
			a.Value, a.Tag, a.Style = b.Value, b.Tag, b.Style
		}
		if !same(a, b) {
			return errNotFound
		}
	}
	return nil
}

func flat(documents []document) []*yaml.Node {
	var out []*yaml.Node
	for _, d := range documents {
		_ = d.root.all(func(n *node) error { // visiting is no error
			out = append(out, n.Node)
			return nil
		})
	}
	return out
}

// same compares nodes without what is below them. A value that has become longer moves what is behind it in its line.
func same(a, b yaml.Node) bool {
	return a.Kind == b.Kind && a.Style == b.Style && a.Tag == b.Tag && a.Value == b.Value && a.Anchor == b.Anchor && a.Line == b.Line && len(a.Content) == len(b.Content) &&
		strings.Join([]string{a.HeadComment, a.LineComment, a.FootComment}, "\n") == strings.Join([]string{b.HeadComment, b.LineComment, b.FootComment}, "\n")
}
