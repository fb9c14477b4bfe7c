package interrupt

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	utilexec "k8s.io/utils/exec"
)

func TestAnInterruptionEndsWithItsCode(t *testing.T) {
	err := Run(t.Context(), func(ctx context.Context) error {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGINT)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	var exit utilexec.CodeExitError
	if !errors.As(err, &exit) || exit.Code != 130 || exit.Error() != "" {
		t.Errorf("got %v, want an end without words and with code 130", err)
	}
}

func TestWhatEndsByItselfIsNoInterruption(t *testing.T) {
	failure := errors.New("no such release")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"success":             {t.Context(), nil},
		"a failure":           {t.Context(), failure},
		"the end of a caller": {ended, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Run(test.ctx, func(context.Context) error { return test.want }); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
