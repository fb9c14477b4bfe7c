// Package plugins says whether plugins run beside the server, and puts together what runs them.
package plugins

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// Options say whether plugins run beside the server, and as whom.
type Options struct {
	// Dir is the folder that they live in. Empty means that none are run.
	Dir string
	// UIDs are the numbers of the users that they run as, FIRST-LAST, where the server is root.
	UIDs string

	first, last uint32
}

// AddFlags adds the flags.
func (p *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.Dir, "plugins-dir", p.Dir,
		"Folder for plugins, which are programs that run beside the server, named by Plugin objects: their programs, folders and logs. Empty runs none. "+
			"One process at a time uses it.")
	fs.StringVar(&p.UIDs, "plugins-uid-range", p.UIDs,
		"Numbers of users, FIRST-LAST, of which each plugin gets one of its own. They must belong to nothing else. If the server is not root, plugins run as its own user instead.")
}

// DefaultUIDs are numbers that systems give to nobody of their own accord.
const DefaultUIDs = "59000-59999"

// lowestUID is the first one that is not for the system.
const lowestUID = 1000

// Validate refuses what cannot be, by the flag.
func (p *Options) Validate() error {
	first, last, ok := strings.Cut(p.UIDs, "-")
	from, err := strconv.ParseUint(first, 10, 32)
	to, err2 := strconv.ParseUint(last, 10, 32)
	if !ok || errors.Join(err, err2) != nil || from > to {
		return fmt.Errorf("--plugins-uid-range: %q must be FIRST-LAST, such as 59000-59999", p.UIDs)
	}
	if from < lowestUID || to == 1<<32-1 { // the last number stands for no user
		return fmt.Errorf("--plugins-uid-range: %q must be within %d-%d", p.UIDs, lowestUID, uint32(1<<32-2))
	}
	p.first, p.last = uint32(from), uint32(to)
	return nil
}

// openDir makes the folder of plugins if need be, and locks it against a second process.
func openDir(path string, passable bool) (string, *os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(path, 0o711); err != nil {
		return "", nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // what leads to where it really is counts
		return "", nil, err
	}
	if err := ours(path); err != nil {
		return "", nil, err
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if err := leads(folder, passable); err != nil {
			return "", nil, err
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s is in use by another manifold: stop that one or choose another folder", path)
		}
		return "", nil, errors.Join(err, lock.Close())
	}
	return path, lock, nil
}

// ours checks that the folder belongs to this process, and nobody else writes to it: who does could have it run other programs.
func ours(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, known := info.Sys().(*syscall.Stat_t); known && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, who could exchange the programs of plugins: choose another folder, or chown it to user %d", path, stat.Uid, os.Geteuid())
	}
	return nil
}

// leads checks a folder above it. Users of plugins have to pass through, and nobody may put another folder in the place of ours.
func leads(folder string, passable bool) error {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return err
	case passable && info.Mode().Perm()&0o001 == 0:
		return fmt.Errorf("the users of plugins cannot pass through %s, which leads to it: choose another folder, or chmod o+x %s", folder, folder)
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("everybody may write to %s, which leads to it, and so exchange the programs of plugins: choose another folder, or chmod o-w %s", folder, folder)
	}
	return nil
}
