package framework

import (
	"flag"
	"testing"
)

// Turns lets some tests run at a time, beside those that take turns of another kind.
type Turns chan struct{}

// NewTurns returns turns for n tests at a time.
func NewTurns(n int) Turns { return make(Turns, n) }

// Take makes a test one that may run beside others and waits for its turn, which ends with the test.
func (turns Turns) Take(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// waiting is how many tests may wait for their turn at a time: more than there are.
const waiting = "10000"

// letAllWait leaves it to Turns how many tests run at a time, unless -parallel says it.
func letAllWait() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", waiting)
}
