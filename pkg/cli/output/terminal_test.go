package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
)

func TestNothingWrittenReachesATerminalAsAnOrder(t *testing.T) {
	const said = "\x1b[2Jweb\x1b]8;;http://x\x07 \u009b31m\u202eroot\rok"
	const want = `^[[2Jweb^[]8;;http://x\u0007 \u009b31m\u202eroot\rok`
	for name, write := range map[string]func(out io.Writer) error{
		"as a line": func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s\n", said)
			return err
		},
		"byte by byte": func(out io.Writer) error {
			for _, c := range []byte(said) {
				if _, err := out.Write([]byte{c}); err != nil {
					return err
				}
			}
			return nil
		},
		"as a cell": func(out io.Writer) error {
			tab := printers.GetNewTabWriter(out)
			fmt.Fprintf(tab, "%s\tx\n", said)
			return tab.Flush()
		},
		"as YAML": func(out io.Writer) error { return YAML.Print(out, map[string]string{"name": said}, nil) },
		"as JSON": func(out io.Writer) error { return JSON.Print(out, map[string]string{"name": said}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			streams = Escaped(streams)
			for _, stream := range []struct {
				to   io.Writer
				seen fmt.Stringer
			}{{streams.Out, out}, {streams.ErrOut, errOut}} {
				if err := write(stream.to); err != nil {
					t.Fatal(err)
				}
				got := stream.seen.String()
				if strings.ContainsAny(got, "\x1b\a\r\u009b\u202e") {
					t.Errorf("the terminal obeys %q", got)
				}
				if !strings.HasPrefix(name, "as YAML") && !strings.HasPrefix(name, "as JSON") && !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestWidth(t *testing.T) {
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer screen.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		out  io.Writer
		want int
	}{
		"a terminal":             {screen, 77},
		"one that is written to": {Escaped(genericiooptions.IOStreams{Out: screen, ErrOut: os.Stderr}).Out, 77},
		"what is no terminal":    {&strings.Builder{}, 120},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Width(test.out, 120); got != test.want {
				t.Errorf("%d columns, want %d", got, test.want)
			}
		})
	}
}
