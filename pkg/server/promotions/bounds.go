package promotions

import "time"

const (
	// mostBody bounds an event of Flux, in bytes. They have some hundred.
	mostBody = 1 << 20
	// readWithin is how long a request may take to arrive.
	readWithin = 10 * time.Second
	// mostAtOnce is how many calls are answered at a time, and mostOfOne how many of one address.
	mostAtOnce = 32
	mostOfOne  = 16

	// An address may call so often in a while.
	mostCalls = 20
	callsIn   = 30 * time.Second
)
