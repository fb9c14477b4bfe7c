package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
)

// Users gives each program a user of its own out of a range. Who has which is told by the owners of their folders, so it stays the same as long as the folder does.
type Users struct {
	// First and Last are the range.
	First, Last uint32
	// Homes is the folder that has the folders of the programs.
	Homes string

	mu sync.Mutex
}

// Of makes the folder of a program and returns who owns it.
func (u *Users) Of(name string) (*User, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := map[uint32]bool{}
	entries, err := os.ReadDir(u.Homes)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue // it has gone meanwhile
		}
		owner, known := ownerOf(info)
		if known && entry.Name() == name && u.has(owner) {
			return &User{ID: owner}, nil
		}
		taken[owner] = true
	}
	id, err := u.free(taken)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(u.Homes, name)
	if err := os.Mkdir(home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return &User{ID: id}, os.Chown(home, int(id), int(id))
}

// Owner is the user of a program whose folder is there, nil if there is none.
func (u *Users) Owner(name string) *User {
	info, err := os.Lstat(filepath.Join(u.Homes, name))
	if err != nil {
		return nil
	}
	if id, known := ownerOf(info); known && u.has(id) {
		return &User{ID: id}
	}
	return nil
}

func (u *Users) has(id uint32) bool { return u.First <= id && id <= u.Last }

// free returns a number of the range that neither a program has nor a user of the machine.
func (u *Users) free(taken map[uint32]bool) (uint32, error) {
	for id := uint64(u.First); id <= uint64(u.Last); id++ {
		if taken[uint32(id)] {
			continue
		}
		if _, err := user.LookupId(strconv.FormatUint(id, 10)); err == nil {
			continue
		}
		return uint32(id), nil
	}
	return 0, fmt.Errorf("all users from %d to %d are taken: delete plugins, or give a larger range by --plugins-uid-range", u.First, u.Last)
}
