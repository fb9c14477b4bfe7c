package delivery

import "github.com/manifold-dev/manifold/internal/text"

// Said returns what somebody outside says, such that it can neither fill a status nor break it, nor be obeyed by a terminal.
func Said(said string) string {
	const most = 256
	return text.Line(said, most)
}
