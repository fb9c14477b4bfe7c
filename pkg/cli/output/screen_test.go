package output

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/term"
)

func TestAScreenIsDrawnInPlace(t *testing.T) {
	var to strings.Builder
	s := &Screen{to: &to, size: func() *term.TerminalSize { return &term.TerminalSize{Height: 10} }}
	var got []string
	for _, lines := range [][]string{{"one", "two"}, {"three"}, {"four", "five\x1b[2J\nsix"}} {
		to.Reset()
		if err := s.Draw(lines); err != nil {
			t.Fatal(err)
		}
		got = append(got, to.String())
	}
	want := []string{
		"\x1b[?7l\r\x1b[Jone\r\ntwo\r\n\x1b[?7h",
		"\x1b[?7l\x1b[2A\r\x1b[Jthree\r\n\x1b[?7h",
		"\x1b[?7l\x1b[1A\r\x1b[Jfour\r\nfive^[[2J six\r\n\x1b[?7h",
	}
	if !slices.Equal(got, want) {
		t.Errorf("drawn is %q, want %q", got, want)
	}
	if s.Rows() != 9 {
		t.Errorf("%d rows, want 9", s.Rows())
	}
}

func TestOnlyTerminalsAreScreens(t *testing.T) {
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer screen.Close()
	for name, test := range map[string]struct {
		out  io.Writer
		want bool
	}{
		"a terminal":             {screen, true},
		"one that is written to": {Escaped(genericiooptions.IOStreams{Out: screen, ErrOut: io.Discard}).Out, true},
		"what is no terminal":    {&strings.Builder{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ScreenOf(test.out) != nil; got != test.want {
				t.Errorf("a screen: %t, want %t", got, test.want)
			}
		})
	}
}
