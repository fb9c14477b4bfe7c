package held

import (
	"errors"

	"github.com/manifold-dev/manifold/pkg/delivery/contents"
)

// Edition tells the content of a revision from that of another one of its name, "" for one that is not there.
func (v *Versions) Edition(namespace, revision string) string {
	if v == nil || v.reader == nil {
		return ""
	}
	return v.reader.Edition(namespace, revision)
}

// Moment is contents.Reader.Moment.
func (v *Versions) Moment() (contents.Moment, bool) {
	if v == nil || v.reader == nil {
		return contents.Moment{}, false
	}
	return v.reader.Moment()
}

// MayCome reports whether what could not be read may be read of the same edition later, when the rest of it is there.
func MayCome(err error) bool {
	return errors.Is(err, contents.ErrMissing) || errors.Is(err, contents.ErrMismatch)
}
