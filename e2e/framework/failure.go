package framework

import (
	"errors"
	"fmt"
	"strings"
)

// Failure is for polling: an error unless the command succeeded.
func Failure(result Result) error {
	if result.Code == 0 {
		return nil
	}
	return errors.New(result.String())
}

// Contains is for polling: an error unless the text contains every phrase.
func Contains(text string, want ...string) error {
	for _, phrase := range want {
		if !strings.Contains(text, phrase) {
			return fmt.Errorf("it does not say %q:\n%s", phrase, text)
		}
	}
	return nil
}

// Lines splits what a command printed.
func Lines(output string) []string { return strings.Split(strings.TrimSpace(output), "\n") }
