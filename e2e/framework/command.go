package framework

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Result is what a command printed and how it ended.
type Result struct {
	Command string
	Stdout  string
	Stderr  string
	// Code is the exit code, or -1 if the command did not run or was killed.
	Code int
}

// String shows everything, for messages.
func (r Result) String() string {
	return fmt.Sprintf("%s ended with code %d\nstdout:\n%s\nstderr:\n%s", r.Command, r.Code, r.Stdout, r.Stderr)
}

// run runs the command to its end.
func run(cmd *exec.Cmd) Result {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	result := resultOf(cmd, cmd.Run())
	result.Stdout, result.Stderr = stdout.String(), stderr.String()+result.Stderr
	return result
}

// resultOf reads how the command ended from the error that it ended with.
func resultOf(cmd *exec.Cmd, err error) Result {
	result := Result{Command: strings.Join(cmd.Args, " ")}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.Code = exit.ExitCode()
	case err != nil:
		result.Code, result.Stderr = -1, err.Error()
	}
	return result
}
