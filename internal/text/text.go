// Package text makes safe what others have written: for a condition, an event or a note, where it is stored, and for a terminal, where it is
// shown. A cluster chooses its messages freely, and a terminal obeys what is written to it.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// cut stands where the rest is left out.
const cut = "..."

// Line returns what somebody else has said as one line of at most most bytes: white space, line breaks among it, becomes single spaces, and
// what terminals obey is written as they would show it. The result is valid UTF-8, and a line of it is itself again.
func Line(said string, most int) string {
	var out strings.Builder
	kept, space := 0, false // kept is how much of it leaves room for cut
	for len(said) > 0 {
		r, size := utf8.DecodeRuneInString(said)
		if unicode.IsSpace(r) {
			space = space || out.Len() > 0
			said = said[size:]
			continue
		}
		part := escaped(r, said[:size])
		said = said[size:]
		if space {
			part, space = " "+part, false
		}
		if out.Len()+len(part) > most {
			return strings.TrimRight(out.String()[:kept], " ") + cut[:min(len(cut), max(most, 0))]
		}
		out.WriteString(part)
		if out.Len()+len(cut) <= most {
			kept = out.Len()
		}
	}
	return out.String()
}

// FirstLine is Line of the first line of what was said.
func FirstLine(said string, most int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return Line(line, most)
}

// Escape returns a text of any number of lines, in which nothing is left that a terminal obeys but line breaks and tabs. What it replaces is
// written as in JSON, so that JSON stays what it is, except for ESC and carriage return, which look as kubectl has them.
func Escape(said string) string {
	if plain(said) {
		return said
	}
	var out strings.Builder
	for len(said) > 0 {
		r, size := utf8.DecodeRuneInString(said)
		if r == '\n' || r == '\t' {
			out.WriteRune(r)
		} else {
			out.WriteString(escaped(r, said[:size]))
		}
		said = said[size:]
	}
	return out.String()
}

// plain reports whether a text is of printable ASCII and line breaks, as most are.
func plain(said string) bool {
	for i := range len(said) {
		if c := said[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// escaped returns a character as it may be shown. bytes are those that it was read from.
func escaped(r rune, bytes string) string {
	switch {
	case r == utf8.RuneError && len(bytes) == 1:
		return fmt.Sprintf(`\x%02x`, bytes[0])
	case r == '\x1b':
		return "^["
	case r == '\r':
		return `\r`
	case !obeyed(r):
		return bytes
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// obeyed reports whether a character changes how others are shown instead of being shown: control characters of 7 and of 8 bits, those that
// turn the direction of writing or are not seen, and other ends of lines. The two that join letters, which some languages need, are not.
func obeyed(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
		unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner
}
