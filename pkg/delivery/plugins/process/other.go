//go:build !linux

package process

import (
	"io/fs"
	"os"
	"time"
)

// Asked reports false: no process is started to become another program.
func Asked() bool { return false }

// Main is never called.
func Main() { os.Exit(1) }

// Process is a program, of which there are none here.
type Process struct{}

// Start fails.
func Start(Spec) (*Process, error) { return nil, ErrUnsupported }

// EndOrphan finds none.
func EndOrphan(string, *User) error { return nil }

// PID is no number.
func (*Process) PID() int { return 0 }

// Done is closed never.
func (*Process) Done() <-chan struct{} { return nil }

// Exit says nothing.
func (*Process) Exit() Exit { return Exit{} }

// Stop does nothing.
func (*Process) Stop(time.Duration) {}

func ownerOf(fs.FileInfo) (uint32, bool) { return 0, false }

// ListensAs has nothing to check.
func ListensAs(int32, *User) error { return nil }
