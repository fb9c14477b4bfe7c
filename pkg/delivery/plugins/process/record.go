package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// record is what a file tells of a program that runs, or ran when the server was killed.
type record struct {
	PID int `json:"pid"`
	// Started is when the process began, in the kernel's ticks since the machine started, and Boot which start of the machine that was. Another process that has
	// got the number by now differs in one of them.
	Started uint64 `json:"started"`
	Boot    string `json:"boot"`
	// Mark is in the environment of the program and of what it starts.
	Mark string `json:"mark"`
	// User is whom it runs as, if that is a user of its own.
	User *User `json:"user,omitempty"`
	// Checksum is that of the program.
	Checksum string `json:"checksum,omitempty"`
}

// mostRecord bounds what is read of a file.
const mostRecord = 64 << 10

// write puts the record into a file, whole or not at all.
func (r record) write(file string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	next := file + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// readRecord reads a file, nil if there is none, or if it is not whole: that is what is left when the machine was switched off, and no process outlives that.
func readRecord(file string) (*record, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > mostRecord {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out record
	if err := json.Unmarshal(content, &out); err != nil {
		return nil, nil
	}
	return &out, nil
}
