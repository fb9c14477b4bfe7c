//go:build linux || darwin

package confined

import "syscall"

// limit has the kernel hold the bounds: memory that is written to, the time of the processor, and no files.
func limit(bounds Bounds) error {
	seconds := uint64(bounds.Time.Seconds()) + 1
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_DATA:  uint64(bounds.Memory),
		syscall.RLIMIT_CPU:   seconds,
		syscall.RLIMIT_FSIZE: 0,
		syscall.RLIMIT_CORE:  0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}
