package pushes

import "time"

const (
	// mostBody bounds what a forge sends of a push, in bytes. What is longer is left to the interval of the application.
	mostBody = 3 << 20
	// mostAtOnce is how many requests are read at a time, and mostOfOne how many of one address: who sends slowly keeps no forge out.
	mostAtOnce = 32
	mostOfOne  = 16
	// readWithin is how long a request may take to arrive.
	readWithin = 10 * time.Second
	// An address may send wrong signatures up to a number at once, and then one in a while.
	mostWrong  = 20
	wrongEvery = 10 * time.Second
)
