package output

import (
	"io"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/manifold-dev/manifold/internal/text"
)

// Escaped returns streams for commands that print nothing but text. Whatever they write, names and messages that others have chosen reach
// no terminal as orders. It is here and not in each command, so that none can forget it. Programs that read the output find JSON unchanged.
func Escaped(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	streams.Out, streams.ErrOut = &escaping{to: streams.Out}, &escaping{to: streams.ErrOut}
	return streams
}

// escaping is a writer that escapes what terminals obey.
type escaping struct {
	to io.Writer
	// begun is the beginning of a character whose rest has not been written yet.
	begun []byte
}

// Write implements io.Writer.
func (e *escaping) Write(p []byte) (int, error) {
	said := append(e.begun, p...)
	whole := len(said)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if utf8.RuneStart(said[i]) && !utf8.FullRune(said[i:]) {
			whole = i
		}
	}
	if _, err := io.WriteString(e.to, text.Escape(string(said[:whole]))); err != nil {
		return 0, err
	}
	e.begun = append(e.begun[:0], said[whole:]...)
	return len(p), nil
}

// Width returns how many columns the terminal has that a command writes to, or otherwise if it does not write to one.
func Width(out io.Writer, otherwise int) int {
	if e, ok := out.(*escaping); ok {
		out = e.to
	}
	if size := (term.TTY{Out: out}).GetSize(); size != nil && size.Width > 0 {
		return int(size.Width)
	}
	return otherwise
}
