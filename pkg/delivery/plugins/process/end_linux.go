package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweeps is how often processes are looked for that have to end. One that forks meanwhile is stopped first, so that there is an end to it.
	sweeps = 200
	// betweenSweeps is how long they have to be gone.
	betweenSweeps = 10 * time.Millisecond
)

// EndOrphan ends the program that a record tells of, with all that it has started, and all that a user of its own has, and removes the record. It is for a server that
// starts: the program belongs to one that was killed. It never ends a process that merely has the number of one.
func EndOrphan(file string, user *User) error {
	if err := endOrphan(file, user); err != nil {
		return fmt.Errorf("end what is left of a server that was killed: %w", err)
	}
	return nil
}

func endOrphan(file string, user *User) error {
	of, err := readRecord(file)
	if err != nil {
		return err
	}
	now, err := boot()
	if err != nil {
		return err
	}
	if of == nil || of.Boot != now {
		of = &record{}
	}
	if user != nil {
		of.User = user
	}
	if err := of.endAll(); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// endAll kills what is left of a program: the process itself, and whatever has its user, its mark or its session.
func (r record) endAll() error {
	if r.PID == 0 && r.User == nil {
		return nil // it is known of nothing
	}
	for range sweeps {
		found, err := r.sweep()
		if err != nil {
			return err
		}
		if found == 0 {
			return nil
		}
		time.Sleep(betweenSweeps)
	}
	return fmt.Errorf("processes that were started by process %d do not end", r.PID)
}

// sweep kills what is found, and reports how many that were.
func (r record) sweep() (int, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	// As long as there are processes in its session, its number is given to nobody else.
	leader, err := look(r.PID)
	sessionIsIts := err != nil || leader.started == r.Started
	var held []int
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range all {
		if pid == os.Getpid() || pid == 1 {
			continue
		}
		// The descriptor stands for the process that is looked at, whoever gets its number.
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ENOSYS) {
			return 0, errors.New("this kernel has no descriptors of processes, which Linux has from 5.3 on")
		}
		if err != nil {
			continue // it has gone
		}
		of, err := look(pid)
		if err != nil || of.dead || !r.covers(of, sessionIsIts) {
			_ = unix.Close(fd)
			continue
		}
		held = append(held, fd)
		_ = unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
	}
	for _, fd := range held {
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return 0, fmt.Errorf("kill what process %d has started: %w", r.PID, err)
		}
	}
	return len(held), nil
}

// covers reports whether a process belongs to the program.
func (r record) covers(of seen, sessionIsIts bool) bool {
	switch {
	case r.PID != 0 && of.pid == r.PID && of.started == r.Started:
		return true
	case r.User != nil && of.user == r.User.ID:
		return true
	case of.mark != "" && of.mark == r.Mark:
		return true
	}
	return r.PID != 0 && sessionIsIts && of.session == r.PID && of.started >= r.Started
}
