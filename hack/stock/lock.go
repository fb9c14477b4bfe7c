package stock

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// LockDir makes the folder and keeps other processes out of it, as far as they ask by this function too, until the file is closed or
// this process ends. A folder that is taken already is an error that says so.
func LockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder %s: %w", dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock folder %s: %w", dir, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("folder %s is in use by another process; stop that first: %w", dir, err)
	}
	return lock, nil
}
