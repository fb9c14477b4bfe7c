package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dataDir is the folder that holds everything a logical cluster must keep.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes the folder if need be and locks it against a second process. The lock ends with the process.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another manifold: stop that one or choose another --data-dir", path)
		}
		return nil, fmt.Errorf("lock the data directory %s: %w", path, err)
	}
	return &dataDir{path: path, lock: lock}, nil
}

func (d *dataDir) Close() error { return d.lock.Close() }

func (d *dataDir) join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}
