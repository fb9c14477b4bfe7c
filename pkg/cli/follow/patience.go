package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// Patience says whether a command waits for what it has begun, and for how long.
type Patience struct {
	Wait bool
	// Timeout is zero to wait for as long as it takes.
	Timeout time.Duration
}

// AddFlags adds the flags --wait, whose usage says what for, and --timeout, which is zero to wait for as long as something takes: "it takes", say.
func (p *Patience) AddFlags(cmd *cobra.Command, wait, takes string) {
	cmd.Flags().BoolVar(&p.Wait, "wait", p.Wait, wait)
	cmd.Flags().DurationVar(&p.Timeout, "timeout", p.Timeout, "With --wait: how long to wait. Zero is for as long as "+takes+".")
}

// Validate refuses a time to wait that is none.
func (p *Patience) Validate() error {
	if p.Timeout < 0 {
		return fmt.Errorf("--timeout must not be less than zero, but is %s", p.Timeout)
	}
	if p.Timeout > 0 && !p.Wait {
		return errors.New("--timeout is for --wait")
	}
	return nil
}
