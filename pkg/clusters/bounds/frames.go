package bounds

import (
	"encoding/binary"
	"fmt"
)

// scanner looks at an answer while it is read. It returns what of that is passed on, in the same memory, and an error where it goes beyond a bound.
type scanner interface {
	scan(read []byte) (passed []byte, err error)
}

// tooDeep tells of JSON that is nested too deep. Of what it is about, the rest may be left out.
func tooDeep(about, what string) error {
	return &ExceededError{What: fmt.Sprintf("the cluster sends %s nested deeper than %d levels%s", about, deepest, what), Do: lookInto}
}

// leftOut stands where a value was nested too deep.
const leftOut = '0'

// nesting follows JSON, of which it knows the length and the depth of each value. What is no JSON is the decoder's business.
type nesting struct {
	most            int64 // bytes of one value, 0 for any
	size            int64
	depth           int
	quoted, escaped bool
	// cut is told of each value that is nested too deep, and left out. Without it such a value is an error.
	cut func()
}

func (n *nesting) scan(read []byte) ([]byte, error) {
	passed := read[:0]
	for len(read) > 0 {
		within, same := n.depth <= deepest, n.same(read)
		if same > 0 {
			n.size += int64(same)
			if within {
				passed = append(passed, read[:same]...)
			}
			read = read[same:]
			continue
		}
		c := read[0]
		read = read[1:]
		if err := n.follow(c); err != nil {
			return nil, err
		}
		switch {
		case within && n.depth <= deepest:
			passed = append(passed, c)
		case within && n.cut == nil:
			return nil, tooDeep("JSON that is", "")
		case within:
			n.cut()
			passed = append(passed, leftOut)
		}
	}
	return passed, n.bound()
}

// same returns how many bytes follow that leave all as it is but for the length, which are most: lists of many megabytes are read at once.
func (n *nesting) same(read []byte) int {
	if n.escaped {
		return 0
	}
	quoted := n.quoted
	for i, c := range read {
		if c == '"' || quoted && c == '\\' || !quoted && (c == '{' || c == '[' || c == '}' || c == ']') {
			return i
		}
	}
	return len(read)
}

// follow takes the next byte.
func (n *nesting) follow(c byte) error {
	n.size++
	switch {
	case n.quoted:
		switch {
		case n.escaped:
			n.escaped = false
		case c == '\\':
			n.escaped = true
		case c == '"':
			n.quoted = false
		}
	case c == '"':
		n.quoted = true
	case c == '{', c == '[':
		n.depth++
	case c == '}', c == ']':
		if err := n.bound(); err != nil { // of a value that ends here
			return err
		}
		if n.depth--; n.depth <= 0 {
			n.depth, n.size = 0, 0
		}
	}
	return nil
}

func (n *nesting) bound() error {
	if n.most > 0 && n.size > n.most {
		return tooMuch("an event of a watch", n.most)
	}
	return nil
}

// frames follows the frames of a watch in protobuf: four bytes that tell a length, and so many bytes.
type frames struct {
	header []byte
	left   int64
}

func (f *frames) scan(passed []byte) ([]byte, error) {
	read := passed
	for len(read) > 0 {
		if f.left > 0 {
			skipped := min(f.left, int64(len(read)))
			f.left -= skipped
			read = read[skipped:]
			continue
		}
		missing := min(4-len(f.header), len(read))
		f.header, read = append(f.header, read[:missing]...), read[missing:]
		if len(f.header) < 4 {
			return passed, nil
		}
		f.left, f.header = int64(binary.BigEndian.Uint32(f.header)), f.header[:0]
		if f.left > mostEvent {
			return nil, tooMuch("an event of a watch", mostEvent)
		}
	}
	return passed, nil
}
