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
	err := cmd.Run()
	result := Result{Command: strings.Join(cmd.Args, " "), Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.Code = exit.ExitCode()
	case err != nil:
		result.Code = -1
		result.Stderr += err.Error()
	}
	return result
}
