package output

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/kubectl/pkg/util/term"

	"github.com/manifold-dev/manifold/internal/text"
)

// Orders to a terminal.
const (
	cutLines  = "\x1b[?7l" // what does not fit into a line is cut, so that lines are rows
	wrapLines = "\x1b[?7h"
	upward    = "\x1b[%dA"
	clearDown = "\x1b[J"
)

// Screen is a terminal on which a text is drawn in the place of the one before.
type Screen struct {
	to   io.Writer
	size func() *term.TerminalSize
	// drawn is how many rows the text before has.
	drawn int
}

// ScreenOf returns the terminal that a command writes to, nil if it does not write to one.
func ScreenOf(out io.Writer) *Screen {
	if e, ok := out.(*escaping); ok {
		out = e.to
	}
	tty := term.TTY{Out: out}
	if !tty.IsTerminalOut() {
		return nil
	}
	return &Screen{to: out, size: tty.GetSize}
}

// Rows returns how many lines can be drawn.
func (s *Screen) Rows() int {
	const usual = 24
	if size := s.size(); size != nil && size.Height > 1 {
		return int(size.Height) - 1 // the cursor stands in the last one
	}
	return usual - 1
}

// Draw writes lines in the place of those before. What a terminal obeys in them is escaped, as everywhere.
func (s *Screen) Draw(lines []string) error {
	var frame strings.Builder
	frame.WriteString(cutLines)
	if s.drawn > 0 {
		fmt.Fprintf(&frame, upward, s.drawn)
	}
	frame.WriteString("\r" + clearDown)
	for _, line := range lines {
		frame.WriteString(strings.ReplaceAll(text.Escape(line), "\n", " ") + "\r\n")
	}
	frame.WriteString(wrapLines)
	s.drawn = len(lines)
	_, err := io.WriteString(s.to, frame.String())
	return err
}
