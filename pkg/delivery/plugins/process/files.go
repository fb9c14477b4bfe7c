package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// WriteFiles writes files into the folder of a program, which is made if need be, readable by its user alone. Files that have the content already stay as they are. The
// folder is the program's own, so a link may lie where a file is to be: it is replaced, and not followed.
func WriteFiles(home string, user *User, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	folder, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer folder.Close()
	for name, content := range files {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("%q is no name of a file", name)
		}
		if err := writeFile(folder, name, content, user); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// RemoveFiles removes files of the folder of a program. Those that are not there are none.
func RemoveFiles(home string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	folder, err := os.OpenRoot(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, name := range names {
		if err := folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// has reports whether a file has a content already. The program may put something else in its place at any moment: what is looked at is what was opened, no
// more of it is read than there is to compare, and nothing that could keep who reads it waiting.
func has(folder *os.Root, name, content string) bool {
	file, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if at, err := folder.Lstat(name); err != nil || !os.SameFile(info, at) { // a link is replaced, whatever it leads to
		return false
	}
	got, err := io.ReadAll(io.LimitReader(file, int64(len(content))+1))
	return err == nil && string(got) == content
}

func writeFile(folder *os.Root, name, content string, user *User) error {
	if has(folder, name, content) {
		return nil
	}
	next := "." + name + "-" + strconv.Itoa(os.Getpid())
	if err := folder.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := folder.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if user != nil {
		if err := out.Chown(int(user.ID), int(user.ID)); err != nil {
			return err
		}
	}
	if _, err := out.WriteString(content); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return folder.Rename(next, name)
}
