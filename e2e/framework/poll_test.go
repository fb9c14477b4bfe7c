package framework

import (
	"testing"
	"time"
)

func TestRestAfterACheck(t *testing.T) {
	for check, want := range map[time.Duration]time.Duration{
		0:                      pollInterval,
		time.Millisecond:       pollInterval,
		200 * time.Millisecond: 400 * time.Millisecond,
		time.Minute:            longestRest,
	} {
		if got := restAfter(check); got != want {
			t.Errorf("after a check of %s it waits %s, want %s", check, got, want)
		}
	}
}
