package trials

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrUnfinished says that there was no time left to try all of a release. What was admitted is remembered.
var ErrUnfinished = errors.New("trying what the revision holds before anything of it is applied")

const (
	// atATime is how long a trial takes others' time before it lets them go on. There may be many thousands of objects to ask about.
	atATime = 10 * time.Second
	// fresh is how long an answer counts. Where a release waits for something, what is asked about again may be refused by then.
	fresh = 10 * time.Minute
)

// Memory is what the server has admitted of a release so far, so that its trial goes on where it stopped. The zero value knows nothing.
type Memory struct {
	release  types.UID
	began    time.Time
	admitted map[[sha256.Size]byte]bool
}

// Forget lets go of what is known, once the trial has ended.
func (m *Memory) Forget() { *m = Memory{} }

// about has the memory be about a release, and forget what is of another one, or too old.
func (m *Memory) about(release types.UID, now time.Time) {
	if m.admitted == nil || m.release != release || now.Sub(m.began) >= fresh {
		*m = Memory{release: release, began: now, admitted: map[[sha256.Size]byte]bool{}}
	}
}

func (m *Memory) unfinished() error {
	return fmt.Errorf("%w: %d objects so far", ErrUnfinished, len(m.admitted))
}
