package cluster

import (
	"fmt"
	"io"
)

// progress tells a person which steps are done. It goes to standard error, so that standard output holds the result alone.
type progress struct {
	out io.Writer
}

// done reports a finished step.
func (p progress) done(format string, args ...any) {
	fmt.Fprintf(p.out, "✓ "+format+"\n", args...)
}

// doing reports a step that may take a while.
func (p progress) doing(format string, args ...any) {
	fmt.Fprintf(p.out, "… "+format+"\n", args...)
}
