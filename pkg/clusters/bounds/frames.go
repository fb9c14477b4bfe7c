package bounds

import (
	"encoding/binary"
	"fmt"
)

// scanner looks at an answer while it is read. It returns an error where it goes beyond a bound.
type scanner interface {
	scan(read []byte) error
}

var errDeep = &ExceededError{What: fmt.Sprintf("the cluster sends JSON that is nested deeper than %d levels", deepest), Do: lookInto}

// nesting follows JSON, of which it knows the length and the depth of each value. What is no JSON is the decoder's business.
type nesting struct {
	most            int64 // bytes of one value, 0 for any
	size            int64
	depth           int
	quoted, escaped bool
}

func (n *nesting) scan(read []byte) error {
	for _, c := range read {
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
			if n.depth++; n.depth > deepest {
				return errDeep
			}
		case c == '}', c == ']':
			if n.depth--; n.depth <= 0 {
				n.depth, n.size = 0, 0
			}
		}
		if n.most > 0 && n.size > n.most {
			return tooMuch("an event of a watch", n.most)
		}
	}
	return nil
}

// frames follows the frames of a watch in protobuf: four bytes that tell a length, and so many bytes.
type frames struct {
	header []byte
	left   int64
}

func (f *frames) scan(read []byte) error {
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
			return nil
		}
		f.left, f.header = int64(binary.BigEndian.Uint32(f.header)), f.header[:0]
		if f.left > mostEvent {
			return tooMuch("an event of a watch", mostEvent)
		}
	}
	return nil
}
