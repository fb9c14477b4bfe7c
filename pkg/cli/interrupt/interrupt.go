// Package interrupt ends commands that watch something as shells expect it.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	utilexec "k8s.io/utils/exec"
)

// Code is the exit code of a command that was interrupted.
const Code = 128 + int(syscall.SIGINT)

// Run runs what watches something, until it ends by itself or somebody interrupts it. An interruption is an error without a text, for which the
// process ends with Code.
func Run(ctx context.Context, watch func(context.Context) error) error {
	watching, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := watch(watching)
	if err != nil && watching.Err() != nil && ctx.Err() == nil {
		return utilexec.CodeExitError{Err: errors.New(""), Code: Code}
	}
	return err
}
