package host

import "time"

const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = time.Minute
	// wellAfter is how long a plugin has to have answered for what failed before to be forgotten.
	wellAfter = time.Minute
	// looping is how many failures in a row are said to be a loop.
	looping = 3
)

// delay is how long a plugin waits for its next start after it has failed so often in a row.
func delay(failures int) time.Duration {
	out := firstDelay
	for range failures - 1 {
		if out *= 2; out >= lastDelay {
			return lastDelay
		}
	}
	return out
}
