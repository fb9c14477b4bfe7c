package physical

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// undoTimeout bounds taking back what a run made, so that a cluster that has just gone silent does not hang the command.
const undoTimeout = 15 * time.Second

// Undo remembers how to take back what a run has newly made.
type Undo []undoStep

type undoStep struct {
	what string
	do   func(context.Context) error
}

// Push adds how to take back one thing.
func (s *Undo) Push(what string, do func(context.Context) error) {
	*s = append(*s, undoStep{what: what, do: do})
}

// Run takes everything back, the newest first, even when ctx has been cancelled. It returns what went wrong together with what
// is therefore left.
func (s Undo) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var left []error
	for _, step := range slices.Backward(s) {
		if err := step.do(ctx); err != nil && !apierrors.IsNotFound(err) {
			left = append(left, fmt.Errorf("%s is left: %w", step.what, err))
		}
	}
	return errors.Join(left...)
}
