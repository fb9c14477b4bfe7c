//go:build !linux && !darwin

package confined

import "errors"

// limit fails where the kernel has no bounds that would hold.
func limit(Bounds) error { return errors.New("this is possible on Linux and macOS alone") }
